import type {
  Answer,
  Arguments,
  BridgedChannel,
  EventName,
  Events,
  IpcEnvelope,
} from "./index.js" with { "resolution-mode": "import" };

/** `window.creonow`, as the preload script exposes it. */
export interface Creonow {
  /** Call a channel; never rejects, answers an envelope. `key` names the call for `cancel`. */
  invoke<C extends BridgedChannel>(
    channel: C,
    ...rest: [...Arguments<C>, options?: { key?: string }]
  ): Promise<IpcEnvelope<Answer<C>>>;
  /** Cancel the running calls that were made with this key. */
  cancel(key: string): Promise<IpcEnvelope<{ canceled: number }>>;
  /**
   * Let the user choose a folder in a dialogue of the app (`chooseFolder` of `createBridge`), and make it a project.
   *
   * A page itself may name no path; `project:create` with a `name` alone makes a folder below the user data.
   */
  chooseProject(name?: string): Promise<IpcEnvelope<Answer<"project:create">>>;
  /** Listen to an event; returns a function that ends it. */
  on<E extends EventName>(event: E, listener: (fields: Events[E]) => void): () => void;
}

declare global {
  interface Window {
    readonly creonow: Creonow;
  }
}
