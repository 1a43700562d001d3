// Who may speak to the bridge: the top frame of a page that the app trusts. Knows no channel.
import { DaemonError } from "./errors.mjs";

/** Pages that come with the app; nothing that came over a network. */
export const DEFAULT_ORIGINS = Object.freeze(["file:", "app:"]);

const SCHEME = /^[a-z][a-z0-9+.-]*:$/;
const ANYBODY = new Set(["http:", "https:", "data:", "blob:", "about:", "javascript:"]);

/**
 * Make the check of a sender against a list of origins.
 *
 * An entry is a scheme (`app:`) or an origin (`http://localhost:5173`). `file:` means this machine's
 * files: a page on a network share is not one of them.
 */
export function senderCheck(origins) {
  const schemes = new Set(origins.filter((origin) => SCHEME.test(origin) && !ANYBODY.has(origin)));
  const hosts = new Set(origins.filter((origin) => !schemes.has(origin)).map(originOf));
  return (event) => {
    const url = topFrameUrl(event);
    const local = url !== undefined && (url.protocol !== "file:" || url.host === "");
    if (local && (schemes.has(url.protocol) || hosts.has(`${url.protocol}//${url.host}`))) return;
    throw new DaemonError("FORBIDDEN", "This page may not call the daemon; see `origins` of createBridge.");
  };
}

function originOf(origin) {
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  if (!url?.host || /[^/]/.test(url.pathname) || url.search || url.hash) {
    throw new TypeError(`${JSON.stringify(origin)} is neither a scheme such as "app:" nor an origin.`);
  }
  return `${url.protocol}//${url.host}`;
}

/** A frame that is gone, or lies inside another, has no URL that we would trust. */
function topFrameUrl(event) {
  try {
    const { url, parent } = event.senderFrame;
    return parent == null && URL.canParse(url) ? new URL(url) : undefined;
  } catch {
    return undefined;
  }
}
