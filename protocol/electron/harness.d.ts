import type {
  CallableChannel,
  CallOptions,
  Daemon,
  DaemonError,
  ErrorCode,
  EventName,
  Events,
  IpcEnvelope,
  ProjectInfo,
  SpawnOptions,
} from "./index.js";

export interface HarnessOptions extends SpawnOptions {
  /** The context of a `node:test` test; the harness ends with it. */
  test?: { after(fn: () => Promise<void>): void };
  /** Give ids and times that are the same in every run (`CREONOW_DETERMINISTIC=1`). */
  deterministic?: boolean;
  /** Keep the folders after `stop`. */
  keep?: boolean;
}

export interface Waiting<T> {
  /** Which one to wait for; any, if left out. */
  where?: (found: T) => boolean;
  /** How long to wait before it fails with `TIMEOUT`. 10 000 by default. */
  timeoutMs?: number;
}

/** Tokens that an answer is said to have taken. */
export interface StoryUsage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
}

/** One answer of the AI. */
export interface StoryStep {
  /** What it answers; without it, the prompt itself. */
  text?: string | null;
  /** How many characters come at once. 2048 by default. */
  piece?: number;
  /** How long it takes before each piece. */
  delayMs?: number;
  /** After how many pieces it stalls or fails. 0 by default. */
  after?: number;
  /** Whether it says nothing more, until the run is cancelled. */
  stall?: boolean;
  /** The error that it fails with. */
  fail?: ErrorCode;
  /** In the details of that error. */
  retryAfterMs?: number;
  /** Why the answer ends. `end` by default. */
  stop?: "end" | "length" | "refused";
  usage?: StoryUsage;
  /** Sampling parameters that the model does not know. */
  unknown?: string[];
}

/** A constraint that the judge finds broken. */
export interface StoryViolation {
  /** Its number in the prompt, from 1 on. */
  constraint: number;
  /** The words that break it, as they stand in the output. */
  quote?: string;
  /** From 0 to 1; 0.5 by default. */
  confidence?: number;
  reason?: string;
  reasonEnglish?: string;
}

/** What the judge says of one output; a constraint that it does not name was kept. */
export interface StoryVerdict {
  violations: StoryViolation[];
  /** The numbers of constraints that it cannot decide on. */
  unsure?: number[];
}

/** What the AI does from now on, call by call; it replaces what was not yet played. */
export interface StoryScript {
  /** Its answers in runs. */
  steps?: StoryStep[];
  /** Its answers as the judge; a string is sent as it stands. Without any, no model judges. */
  verdicts?: Array<StoryVerdict | string>;
  /** What each verdict is said to have taken. */
  verdictUsage?: StoryUsage;
}

/** A line of `main.log`. */
export type LogLine = { event: string; level: string; time: string } & Record<string, unknown>;

export interface Harness {
  /** A folder of this harness alone, with its projects and its user data. */
  readonly home: string;
  readonly userData: string;
  /** Call a channel as the owner; rejects with a `DaemonError`. Takes the `e2e:` channels too. */
  call: Daemon["call"] & ((channel: `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<any>);
  /** Call a channel as the owner and get the IPC envelope. */
  invoke: Daemon["invoke"] &
    ((channel: `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<IpcEnvelope<any>>);
  /** Call a channel that must fail, and resolve with its error. */
  failure: (channel: CallableChannel | `e2e:${string}`, payload?: object, options?: CallOptions) => Promise<DaemonError>;
  /** Answer a call that the daemon makes; returns a function that removes the handler. */
  handle: Daemon["handle"];
  /** Make a folder with these files (path → text) and register it as a project. */
  makeProject(name?: string, files?: Readonly<Record<string, string>>): Promise<ProjectInfo>;
  /** Set what the AI says from now on, in runs and as a judge; only where the fake provider answers. */
  script(script: StoryScript): Promise<void>;
  /** Wait for the next event of this name that matches, and remove it from the queue. */
  event<E extends EventName>(name: E, waiting?: Waiting<Events[E]>): Promise<Events[E]>;
  /** Read the log lines of the daemon, oldest first; only those of `event`, if it is given. */
  logs(event?: string): Promise<LogLine[]>;
  /** Wait until the daemon has logged this event, and return the line. */
  log(event: string, waiting?: Waiting<LogLine>): Promise<LogLine>;
  /** Kill the daemon as a crash would, and wait until it is gone. */
  kill(): Promise<void>;
  /** Start or join the daemon again on the same user data, for example after `kill`. */
  start(): Promise<void>;
  /** Stop the daemon and remove the folder `home`, unless `keep` was set. */
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
