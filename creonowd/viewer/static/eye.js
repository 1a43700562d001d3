// The eye of a person or a note: always, when mentioned, by hand, never. It writes the file, and that can be undone.

import { h } from "./dom.js";
import { errorText, string } from "./language.js";
import { place } from "./place.js";
import { invoke, offers } from "./rpc.js";
import { signal } from "./signals.js";
import { takeBack, toast } from "./undo.js";

const SET = "context:creonow:inject:set";
const MODES = ["always", "mentioned", "manual", "never"];
const SIGNS = { always: "◉", mentioned: "◐", manual: "○", never: "⊘" };

export const canSetMode = () => offers(SET);

/** Make the button that shows the mode of a subject and cycles to the next. */
export function eye({ kind, sourceRef, name, inject = "always", revision, problem }) {
  if (problem || !["person", "note"].includes(kind)) return null;
  const next = MODES[(MODES.indexOf(inject) + 1) % MODES.length];
  const label = offers(SET) ? string("eyeLabel", name, string(`inject ${inject}`), string(`inject ${next}`)) : `${name}: ${string(`inject ${inject}`)}`;
  return h("button", { type: "button", class: `eye ${inject}`, "data-key": `eye:${sourceRef}`, "data-inject": inject, "aria-label": label, title: label,
    disabled: !offers(SET), onclick: () => setMode({ sourceRef, name, revision }, next) }, SIGNS[inject]);
}

/** Write how a person or a note comes into the prompt. */
export async function setMode({ sourceRef, name, revision }, inject) {
  const target = { projectId: place.projectId, path: sourceRef };
  const answer = await invoke(SET, { ...target, inject, ...(revision ? { expectedRevision: revision } : {}) });
  if (!answer.ok) {
    signal("subjects");
    return toast(errorText(answer.error));
  }
  signal("subjects");
  return toast(string("eyeSet", name, string(`inject ${inject}`)), async () => {
    const isBack = await takeBack(answer.data.undo);
    signal("subjects");
    return isBack;
  });
}
