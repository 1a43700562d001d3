// One redacted JSON file for a bug report.

import { h } from "./dom.js";
import { isListed } from "./editorState.js";
import { report } from "./inspector.js";
import { invoke } from "./rpc.js";

/** Offer the report as a download. What the author typed is not in it, only how long it was. */
export async function download() {
  const health = await invoke("app:health", {});
  const contents = report();
  if (!isListed(contents.request.documentId)) contents.request.documentId = "(not listed)";
  const whole = { exportedFrom: "creonowd", health: health.ok ? health.data : health.error, ...contents };
  const blob = new Blob([JSON.stringify(whole, null, 2)], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(blob), download: "creonow-context.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
