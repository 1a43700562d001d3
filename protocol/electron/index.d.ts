import type {
  Answer,
  Arguments,
  Channel,
  ErrorCode,
  HostCalls,
  Initialized,
  IpcEnvelope,
  Notifications,
  OwnerChannel,
  Program,
  RendererChannel,
  Stamp,
} from "./contract.js";

export * from "./contract.js";

/** What a page may call: a renderer's channels, except those that set up the connection. */
export type BridgedChannel = Exclude<RendererChannel, "initialize" | "ipc:invoke">;

/** What the main process may call; `spawnDaemon` calls the rest itself. */
export type CallableChannel = Exclude<Channel, "initialize" | "shutdown" | "exit">;

/** The daemon has been started again. Sync open documents and read lists again. */
export interface Restarted {
  /** How often the daemon has been started again. */
  restarts: number;
  /** The watches and sources that were set up again, each with its outcome. */
  restored: Array<
    { channel: Channel; payload: unknown } & (
      | { ok: true }
      | { ok: false; error: { code: ErrorCode; message: string; details?: Record<string, unknown> } }
    )
  >;
}

/** What can be listened to. `seq` begins again at 1 after a restart. */
export interface Events extends Notifications {
  "$/restarted": Restarted;
}

export type EventName = keyof Events;

/** A failure: test `code`; `retryable` says whether trying again may help. */
export class DaemonError extends Error {
  constructor(code: ErrorCode, message: string, details?: Record<string, unknown>);
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details?: Record<string, unknown>;
}

export type ExecutableOrigin = "option" | "resources" | "package" | "environment" | "path";

export interface SpawnOptions {
  /** The daemon's program; by default from the app's resources (`creonowd/`), the package of this platform, `CREONOW_DAEMON`, or PATH. */
  executable?: string | undefined;
  /** Arguments before `serve`: `["-P", "-m", "creonowd"]` if `executable` is a Python. */
  args?: readonly string[];
  /** Where the daemon keeps its data; by default `CREONOW_USER_DATA_DIR` or the platform's folder. */
  userData?: string;
  /** Added to this process's own environment. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Allow `context:inspect` to the main process. */
  debug?: boolean;
  /** The language of messages, such as `app.getLocale()`. */
  locale?: string;
  /** Name and version of this client, for the daemon's log. */
  clientInfo?: Program;
  /** How long one start may take. 30 000 by default. */
  startTimeoutMs?: number;
  /** How long a call waits for a daemon that is being restarted. 15 000 by default. */
  waitMs?: number;
  /** When to start again after the daemon has ended; `false` for never. */
  restart?: false | RestartPolicy;
  /** Called with every line that the daemon writes to stderr. */
  onStderr?: (line: string) => void;
  /** Called with what a listener or handler of the app threw. `console.error` by default. */
  onFault?: (error: unknown) => void;
}

export interface RestartPolicy {
  /** How often in a row to start again before the state is `failed`. 6 by default. */
  attempts?: number;
  /** The first pause; each further one is twice as long. 200 by default. */
  firstDelayMs?: number;
  /** The longest pause. 10 000 by default. */
  longestDelayMs?: number;
  /** A daemon that has run this long resets the count of `attempts`. 30 000 by default. */
  stableMs?: number;
}

export interface CallOptions {
  /** Cancels the call in the daemon; it rejects with `CANCELED` unless it had already finished. */
  signal?: AbortSignal;
  /** Called with every progress report of a long call. */
  onProgress?: (value: unknown) => void;
  /** The deadline of this call, instead of the channel's own. */
  timeoutMs?: number;
}

export type DaemonState = "starting" | "ready" | "restarting" | "failed" | "stopping" | "stopped";

/** A daemon that is kept alive; made by `spawnDaemon`. */
export interface Daemon {
  readonly state: DaemonState;
  /** What the running daemon answered to `initialize`. */
  readonly info: Initialized | undefined;
  readonly pid: number | undefined;
  readonly userData: string;
  /** The program that runs, and where it was found. */
  readonly executable: { readonly path: string; readonly origin: ExecutableOrigin };
  /** Call a channel as an owner; rejects with a `DaemonError`. */
  call<C extends CallableChannel>(
    channel: C,
    ...rest: [...Arguments<C>, options?: CallOptions]
  ): Promise<Answer<C>>;
  /** Call a channel as an owner and get the envelope; never rejects. */
  invoke<C extends CallableChannel>(
    channel: C,
    ...rest: [...Arguments<C>, options?: CallOptions]
  ): Promise<IpcEnvelope<Answer<C>>>;
  /** Listen to an event, over every restart; returns a function that ends it. */
  on<E extends EventName>(event: E, listener: (fields: Events[E]) => void): () => void;
  /** Answer a call that the daemon makes; returns a function that removes the handler. */
  handle<M extends keyof HostCalls>(
    method: M,
    handler: (
      params: HostCalls[M]["request"],
      context: { signal: AbortSignal },
    ) => HostCalls[M]["result"] | Promise<HostCalls[M]["result"]>,
  ): () => void;
  /** Call `watcher` on every change of `state`; returns a function that ends it. */
  onState(watcher: (state: DaemonState) => void): () => void;
  /** Resolve when the daemon can be called; reject, with its stderr, when it will not start any more. */
  ready(): Promise<void>;
  /** Start a daemon that has failed, or replace a running one after it has left. */
  restart(): Promise<void>;
  /** Let it finish, end it, and kill what is left of its process tree after `graceMs` (6 000). */
  stop(options?: { graceMs?: number }): Promise<void>;
}

/** Start the daemon and resolve once it has answered `initialize`; positions are UTF-16. */
export function spawnDaemon(options?: SpawnOptions): Promise<Daemon>;

/** The part of Electron's `ipcMain` that the bridge uses. */
export interface IpcMainLike {
  handle(channel: string, listener: (event: any, ...args: any[]) => unknown): void;
  removeHandler(channel: string): void;
}

export interface BridgeOptions {
  /**
   * What pages may call; `RENDERER_CHANNELS` by default.
   *
   * A channel that only owners may call is called with the rights of the main process: list it only
   * if every page may do that. Channels that set up the connection are refused.
   */
  allow?: readonly (BridgedChannel | OwnerChannel | (string & {}))[];
  /** What pages may listen to; `EVENTS` by default. */
  events?: readonly (EventName | (string & {}))[];
  /** Which pages may call: schemes (`app:`) and origins (`http://localhost:5173`); `DEFAULT_ORIGINS` by default. */
  origins?: readonly string[];
  /**
   * Show a folder dialogue for `window.creonow.chooseProject` and resolve with the folder's path, or undefined.
   *
   * `event` is Electron's, so that the dialogue can belong to the window that asked.
   */
  chooseFolder?: (event: any) => Promise<string | undefined> | string | undefined;
}

export interface Bridge {
  /** For every `BrowserWindow` that uses the daemon: the preload, the sandbox, the allow-list. */
  readonly webPreferences: {
    preload: string;
    additionalArguments: string[];
    contextIsolation: true;
    nodeIntegration: false;
    sandbox: true;
  };
  /** Answer no more pages, and close their connections. */
  dispose(): void;
}

/** Let pages call the daemon through `window.creonow`. */
export function createBridge(ipcMain: IpcMainLike, daemon: Daemon, options?: BridgeOptions): Bridge;

/** The preload script, for windows that do not use `bridge.webPreferences`. */
export const preloadPath: string;

export const RENDERER_CHANNELS: readonly BridgedChannel[];
export const OWNER_CHANNELS: readonly OwnerChannel[];
export const EVENTS: readonly (keyof Notifications)[];
/** Pages that come with the app: `file:` and `app:`. */
export const DEFAULT_ORIGINS: readonly string[];
