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
  /** Listen to an event; returns a function that ends it. */
  on<E extends EventName>(event: E, listener: (fields: Events[E]) => void): () => void;
}

declare global {
  interface Window {
    readonly creonow: Creonow;
  }
}
