// Which pages may call the daemon: top frames of the origins that the app trusts.
import { DaemonError } from "./errors.mjs";

/** Pages that come with the app; no page from a network. */
export const DEFAULT_ORIGINS = Object.freeze(["file:", "app:"]);

const SCHEME = /^[a-z][a-z0-9+.-]*:$/;
const UNTRUSTED_SCHEMES = new Set(["http:", "https:", "data:", "blob:", "about:", "javascript:"]);

/**
 * Make a check that throws FORBIDDEN unless an event comes from one of these origins.
 *
 * An entry is a scheme (`app:`) or an origin (`http://localhost:5173`). `file:` means this machine's
 * files: a page on a network share is not one of them.
 */
export function originCheck(origins) {
  const schemes = new Set(origins.filter((origin) => SCHEME.test(origin) && !UNTRUSTED_SCHEMES.has(origin)));
  const hosts = new Set(origins.filter((origin) => !schemes.has(origin)).map(parseOrigin));
  return (event) => {
    const url = topFrameUrl(event);
    const isLocal = url !== undefined && (url.protocol !== "file:" || url.host === "");
    if (isLocal && (schemes.has(url.protocol) || hosts.has(`${url.protocol}//${url.host}`))) return;
    throw new DaemonError("FORBIDDEN", "This page may not call the daemon; see `origins` of createBridge.");
  };
}

function parseOrigin(origin) {
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  if (!url?.host || /[^/]/.test(url.pathname) || url.search || url.hash) {
    throw new TypeError(`${JSON.stringify(origin)} is neither a scheme such as "app:" nor an origin.`);
  }
  return `${url.protocol}//${url.host}`;
}

/** Return the URL of a top frame; undefined for a frame inside another or one that is gone. */
function topFrameUrl(event) {
  try {
    const { url, parent } = event.senderFrame;
    return parent == null && URL.canParse(url) ? new URL(url) : undefined;
  } catch {
    return undefined;
  }
}
