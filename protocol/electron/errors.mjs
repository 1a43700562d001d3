// The one error of the package, and the envelope in which a page receives it.
import { RETRYABLE_CODES } from "./channels.mjs";

const RETRYABLE = new Set(RETRYABLE_CODES);

/** A failure with a stable code of the catalogue; `retryable` says whether trying again may help. */
export class DaemonError extends Error {
  constructor(code, message, details) {
    super(message);
    this.name = "DaemonError";
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    if (details !== undefined) this.details = details;
  }
}

/** Make a `DaemonError` of the `error` of a JSON-RPC reply. */
export function fromReply(error) {
  const data = error?.data ?? {};
  const result = new DaemonError(data.code ?? "INTERNAL", String(error?.message ?? ""), data.details);
  if (typeof data.retryable === "boolean") result.retryable = data.retryable;
  return result;
}

/** Make the error of a call that the daemon did not live to answer. */
export function disconnected(message = "The daemon has gone; try again.", details) {
  return new DaemonError("DISCONNECTED", message, details);
}

/**
 * Make the error of calls to a daemon that will not be started again.
 *
 * It leaves out what the daemon wrote to stderr: that may name folders, and pages are among the
 * callers. The errors of `ready()` and `spawnDaemon` contain it.
 */
export function unavailable(reason) {
  if (["SHUTTING_DOWN", "UNSUPPORTED"].includes(reason.code)) return reason;
  return disconnected("The daemon was given up; the main process knows why.", reason.details);
}

/** Make the error of a call that its caller has cancelled. */
export function canceled() {
  return new DaemonError("CANCELED", "The request was cancelled.");
}

/** Wait for a call and put its result or its error into an envelope; never rejects. */
export async function envelope(call) {
  try {
    return { ok: true, data: await call };
  } catch (error) {
    return failure(error);
  }
}

/** Make the envelope of an error; one that is no `DaemonError` becomes INTERNAL without details. */
export function failure(error) {
  if (!(error instanceof DaemonError)) {
    return { ok: false, error: { code: "INTERNAL", message: "Something went wrong in the bridge." } };
  }
  const { code, message, details } = error;
  return { ok: false, error: details === undefined ? { code, message } : { code, message, details } };
}
