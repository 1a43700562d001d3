// One redacted JSON file for a bug report; the manuscript is in it only if the author asks for that.

import { budgetProfile } from "./budgetBar.js";
import { button, fill, h } from "./dom.js";
import { inspection } from "./inspection.js";
import { string } from "./language.js";
import { invoke } from "./rpc.js";
import { sinceLastTime } from "./since.js";

/** Offer both kinds of export, the one without texts first. */
export function showExport(box) {
  const isEmpty = !inspection.shown;
  fill(box, h("p", {}, button(string("export"), () => download(), { id: "export", disabled: isEmpty }), " ", h("span", { class: "faint" }, string("exportHint"))),
    h("p", {}, button(string("exportTexts"), () => download({ texts: true }), { id: "export-texts", disabled: isEmpty }), " ", h("span", { class: "faint" }, string("exportTextsHint"))));
}

/** Offer the report as a download. What the author typed is not in it, only how long it was. */
async function download({ texts = false } = {}) {
  const health = await invoke("app:health", {});
  const contents = report();
  if (!texts) contents.inspect = await withoutTexts(contents.inspect);
  const whole = { exportedFrom: "creonowd", health: health.ok ? health.data : health.error, ...contents };
  const blob = new Blob([JSON.stringify(whole, null, 2)], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(blob), download: "creonow-context.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function report() {
  const { request, at, result } = inspection.shown;
  const { additionalInput = "", show, ...where } = request;
  const { prompt, names, ...inspect } = result;
  const changes = sinceLastTime().map(({ was, is }) => ({ layer: (is ?? was).layer, sourceRef: (is ?? was).sourceRef, was: was?.action, is: is?.action }));
  return { assembledAt: at.toISOString(), request: { ...where, inputLength: additionalInput.length }, profile: budgetProfile(), inspect, changes };
}

/** Replace every text by its length and hash: enough to compare two reports, nothing to read. */
async function withoutTexts({ coverage, ...inspect }) {
  const layers = await Promise.all(
    Object.entries(inspect.layersDetail).map(async ([name, layer]) => {
      const fragments = await Promise.all(layer.fragments.map(withoutContent));
      return [name, { ...(await withoutContent(layer)), fragments }];
    }),
  );
  return { ...inspect, layersDetail: Object.fromEntries(layers) };
}

async function withoutContent({ content, name, why, ...rest }) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content));
  const contentHash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...rest, contentLength: content.length, contentHash };
}
