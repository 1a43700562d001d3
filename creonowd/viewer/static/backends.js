// The AI that answers runs: which one, whether it can, and the others to choose from.

import { button, copyButton, fill, h } from "./dom.js";
import { errorText, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { signal } from "./signals.js";
import { toast } from "./undo.js";

const COMMAND = "creonowd ai add";

/** Ask which back ends there are and show them. */
export async function showBackends(box) {
  const answer = await invoke("ai:config:get", { projectId: place.projectId || undefined });
  if (!answer.ok) return fill(box, h("p", { class: "faint" }, errorText(answer.error)));
  const { backend, backends, provider, model, ready, problem, judgedBy } = answer.data;
  const isFake = provider === "fake";
  const rows = backends.map((one) => h("li", { class: "row" }, h("span", { class: "grow" }, one.name === "default" ? string("defaultBackend") : one.name, " ", h("span", { class: "faint" }, [one.provider, one.model].filter(Boolean).join(" · "))),
    one.name === backend ? h("span", { class: "badge good" }, string("inUse")) : button(string("use"), () => use(one.name, backend), { class: "small" })));
  return fill(box,
    h("p", { class: ready && !isFake ? "" : "warn-text" }, isFake ? string("fake") : ready ? string("aiReady", model || provider) : problem || string("aiNotReady")),
    isFake || !ready ? h("p", { class: "row" }, h("code", {}, COMMAND), copyButton(string("copy"), () => COMMAND, { class: "small", done: string("copied"), failed: string("copyFailed") })) : null,
    h("ul", { class: "plain" }, ...rows), h("p", { class: "faint" }, string(`judged ${judgedBy}`)));
}

async function use(name, before) {
  const answer = await invoke("ai:config:set", { use: name });
  if (!answer.ok) return toast(errorText(answer.error));
  signal("place", {});
  return toast(string("nowUses", name), async () => {
    await invoke("ai:config:set", { use: before });
    signal("place", {});
  });
}
