// Writing something down for the model: a person, a note or a rule, from nothing but its name.

import { byId, button, fill, h } from "./dom.js";
import { errorText, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { addRule } from "./rules.js";
import { signal, when } from "./signals.js";
import { toast } from "./undo.js";

const KINDS = ["person", "note", "rule"];
let opener = null;

/** Open the form; what it writes is a new file, never one that exists. */
export function openWriteDown({ kind = "person", name = "" }) {
  opener = document.activeElement;
  const box = byId("card");
  const chosen = h("select", { id: "write-kind" }, ...KINDS.map((one) => h("option", { value: one, selected: one === kind }, string(`kind ${one}`))));
  const title = h("input", { id: "write-name", value: name, autocomplete: "off", required: "" });
  const text = h("textarea", { id: "write-text", rows: "5" });
  const problem = h("p", { class: "message bad", role: "alert" });
  box.setAttribute("aria-label", string("writeDown"));
  fill(box, h("form", { class: "write-down", onsubmit: async (event) => {
    event.preventDefault();
    const answer = await write(chosen.value, title.value.trim(), text.value.trim());
    if (!answer.ok) {
      problem.textContent = errorText(answer.error);
      return;
    }
    close();
    signal("subjects");
    toast(string("writtenDown", title.value.trim()));
  } },
  h("h3", {}, string("writeDown")),
  h("label", {}, string("writeKind"), chosen), h("label", {}, string("writeName"), title), h("label", {}, string("writeText"), text), problem,
  h("p", { class: "row" }, h("button", { type: "submit", class: "primary" }, string("save")), button(string("cancelWriting"), close))));
  box.hidden = false;
  box.style.left = `${Math.max(8, (innerWidth - box.offsetWidth) / 2)}px`;
  box.style.top = "12vh";
  (name ? text : title).focus();
}

function close() {
  byId("card").hidden = true;
  opener?.focus({ preventScroll: true });
}

function write(kind, name, text) {
  if (kind === "rule") return addRule(text ? `${name}: ${text}` : name);
  return invoke("viewer:write_down", { projectId: place.projectId, kind, name, text });
}

export function listenToWriteDown() {
  when("write-down", openWriteDown);
}
