// The one error, and the envelope that a renderer sees of it. Knows codes; knows no channel.
import { RETRYABLE_CODES } from "./channels.mjs";

const RETRYABLE = new Set(RETRYABLE_CODES);

/** A failure with the stable code of the catalogue; `retryable` tells whether trying again may help. */
export class DaemonError extends Error {
  constructor(code, message, details) {
    super(message);
    this.name = "DaemonError";
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    if (details !== undefined) this.details = details;
  }
}

/** Read the `error` of a JSON-RPC reply. */
export function fromReply(error) {
  const data = error?.data ?? {};
  const read = new DaemonError(data.code ?? "INTERNAL", String(error?.message ?? ""), data.details);
  if (typeof data.retryable === "boolean") read.retryable = data.retryable;
  return read;
}

/** Say that the daemon has gone before it answered. */
export function disconnected(message = "The daemon has gone; try again.", details) {
  return new DaemonError("DISCONNECTED", message, details);
}

/**
 * Tell callers that the daemon is given up, without what it wrote to stderr: that may name folders,
 * and pages are among the callers. `ready()` and `spawnDaemon` say all of it.
 */
export function givenUp(failure) {
  if (["SHUTTING_DOWN", "UNSUPPORTED"].includes(failure.code)) return failure;
  return disconnected("The daemon was given up; the main process knows why.", failure.details);
}

/** Say that the caller itself ended the call. */
export function canceled() {
  return new DaemonError("CANCELED", "The request was cancelled.");
}

/** Wait for a call and put what came of it into an envelope; never rejects. */
export async function envelope(call) {
  try {
    return { ok: true, data: await call };
  } catch (error) {
    return failure(error);
  }
}

/** Spell a failure as the renderer sees it; what is not ours shows nothing of itself. */
export function failure(error) {
  if (!(error instanceof DaemonError)) {
    return { ok: false, error: { code: "INTERNAL", message: "Something went wrong in the bridge." } };
  }
  const { code, message, details } = error;
  return { ok: false, error: details === undefined ? { code, message } : { code, message, details } };
}
