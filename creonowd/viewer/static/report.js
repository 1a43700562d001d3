// One redacted JSON file for a bug report; the manuscript is in it only if the author asks for that.

import { h } from "./dom.js";
import { isListed } from "./editorState.js";
import { report } from "./inspector.js";
import { invoke } from "./rpc.js";

/** Offer the report as a download. What the author typed is not in it, only how long it was. */
export async function download({ texts = false } = {}) {
  const health = await invoke("app:health", {});
  const contents = report();
  if (!texts) contents.inspect = await withoutTexts(contents.inspect);
  if (!isListed(contents.request.documentId)) contents.request.documentId = "(not listed)";
  const whole = { exportedFrom: "creonowd", health: health.ok ? health.data : health.error, ...contents };
  const blob = new Blob([JSON.stringify(whole, null, 2)], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(blob), download: "creonow-context.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Replace every text by its length and hash: enough to compare two reports, nothing to read. */
async function withoutTexts(inspect) {
  const layers = await Promise.all(
    Object.entries(inspect.layersDetail).map(async ([name, layer]) => {
      const fragments = await Promise.all(layer.fragments.map(withoutContent));
      return [name, { ...(await withoutContent(layer)), fragments }];
    }),
  );
  return { ...inspect, layersDetail: Object.fromEntries(layers) };
}

async function withoutContent({ content, ...rest }) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content));
  const contentHash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...rest, contentLength: content.length, contentHash };
}
