// The skills that can be run, and the instruction that goes with them.

import { byId, fill, h } from "./dom.js";
import { string } from "./language.js";
import { GENERAL, go, place } from "./place.js";
import { invoke } from "./rpc.js";
import { when } from "./signals.js";

let skills = [];

/** Load the skills of the project. */
export async function loadSkills() {
  const answer = await invoke("viewer:skills", { projectId: place.projectId });
  skills = answer.ok ? answer.data.items : [];
  showSkills();
}

/** List the skills in the language of the page, keeping the one that is chosen. */
export function showSkills() {
  if (!skills.length) return;
  const option = (one) => h("option", { value: one.id, disabled: !one.valid }, one.valid ? one.name : string("invalidSkill", one.name || one.id));
  fill(byId("skill"), ...skills.map(option), h("option", { value: GENERAL }, string("general")));
  const ids = [place.skillId, "builtin:continue", GENERAL];
  const chosen = ids.find((id) => id === GENERAL || skills.some((one) => one.id === id && one.valid));
  place.skillId = chosen;
  byId("skill").value = chosen;
}

/** Return what the page calls a skill. */
export const skillName = (id) => skills.find((one) => one.id === id)?.name ?? "";

export function listenToSkills() {
  byId("skill").addEventListener("change", (event) => go({ skillId: event.target.value }));
  byId("input").addEventListener("input", (event) => {
    grow(event.target);
    go({ instruction: event.target.value });
  });
  when(["skills", "language"], showSkills);
}

/** Let the field be as high as its text, within limits. */
function grow(field) {
  field.style.height = "auto";
  field.style.height = `${Math.min(160, field.scrollHeight + 2)}px`;
}
