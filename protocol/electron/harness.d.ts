import type {
  CallableChannel,
  CallOptions,
  Daemon,
  DaemonError,
  EventName,
  Events,
  IpcEnvelope,
  ProjectInfo,
  SpawnOptions,
} from "./index.js";

export interface HarnessOptions extends SpawnOptions {
  /** The context of a `node:test` test; the harness ends with it. */
  test?: { after(fn: () => Promise<void>): void };
  /** Count ids and the clock instead of rolling them (`CREONOW_DETERMINISTIC=1`). */
  deterministic?: boolean;
  /** Leave the folders for a look at them. */
  keep?: boolean;
}

export interface Waiting<T> {
  /** Which one is meant; any, if left out. */
  where?: (found: T) => boolean;
  /** 10 000 by default; past it, `TIMEOUT`. */
  timeoutMs?: number;
}

/** A line of `main.log`. */
export type LogLine = { event: string; level: string; time: string } & Record<string, unknown>;

export interface Harness {
  /** A folder of this story alone; projects and user data lie in it. */
  readonly home: string;
  readonly userData: string;
  /** Call a channel as the owner; rejects with a `DaemonError`. Takes the channels of harnesses too. */
  call: Daemon["call"] & ((channel: `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<any>);
  /** Call a channel as the owner and get the IPC envelope. */
  invoke: Daemon["invoke"] &
    ((channel: `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<IpcEnvelope<any>>);
  /** Call a channel and resolve with the error that must come. */
  failure: (channel: CallableChannel | `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<DaemonError>;
  /** Answer a call that the daemon makes; returns what takes the handler away. */
  handle: Daemon["handle"];
  /** Make a folder with these files (path → text) and register it as a project. */
  makeProject(name?: string, files?: Readonly<Record<string, string>>): Promise<ProjectInfo>;
  /** Wait for the next event of this name that fits, and take it. */
  event<E extends EventName>(name: E, waiting?: Waiting<Events[E]>): Promise<Events[E]>;
  /** Read what the daemon has logged, oldest first; of one event, if it is named. */
  logs(event?: string): Promise<LogLine[]>;
  /** Wait until the daemon has logged this event, and return the line. */
  log(event: string, waiting?: Waiting<LogLine>): Promise<LogLine>;
  /** Kill the daemon as a crash would, and wait until it is gone. */
  kill(): Promise<void>;
  /** Start or join the daemon again, after `kill` say, on the same user data. */
  start(): Promise<void>;
  /** Stop the daemon and remove what the story left, unless it asked to `keep` it. */
  stop(): Promise<void>;
}

/** A harness over a daemon of its own. */
export interface StartedHarness extends Harness {
  readonly daemon: Daemon;
}

/** Start a daemon with user data of its own, with `CREONOW_E2E=1`. */
export function startHarness(options?: HarnessOptions): Promise<StartedHarness>;

export interface JoinOptions {
  /** The folder of the app under test, its `CREONOW_USER_DATA_DIR`. */
  userData: string;
  /** The context of a `node:test` test; the harness ends with it. */
  test?: { after(fn: () => Promise<void>): void };
  keep?: boolean;
  /** How long to wait for the app to start its daemon. 10 000 by default. */
  waitMs?: number;
}

/** Join the daemon that an app under test has started, as its owner; `stop` leaves it running. */
export function joinHarness(options: JoinOptions): Promise<Harness>;
