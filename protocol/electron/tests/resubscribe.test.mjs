// What must be set up again after a restart: begun, not ended, once each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Journal } from "../resubscribe.mjs";

const WATCH = "context:creonow:watch";
const SOURCE = "context:source";

/** A journal of these calls, each [channel, payload]. */
function journal(...calls) {
  const made = new Journal();
  for (const [channel, payload] of calls) made.note(channel, JSON.stringify(payload));
  return made;
}

function left(made) {
  return made.entries().map(({ channel, text }) => [channel, JSON.parse(text)]);
}

test("what was begun and not ended is left, in order", () => {
  const made = journal(
    [`${WATCH}:start`, { projectId: "a" }],
    [`${WATCH}:start`, { projectId: "b" }],
    ["app:ping", {}],
    [`${WATCH}:stop`, { projectId: "a" }],
    [`${WATCH}:stop`, { projectId: "never begun" }],
  );

  assert.deepEqual(left(made), [[`${WATCH}:start`, { projectId: "b" }]]);
});

test("what was begun twice is left once, as it was begun last", () => {
  const source = { layer: "rules", name: "kg", kind: "kg" };
  const made = journal(
    [`${SOURCE}:register`, { ...source, timeoutMs: 100 }],
    [`${SOURCE}:register`, { ...source, projectId: "a" }],
    [`${SOURCE}:register`, { ...source, timeoutMs: 200 }],
    [`${SOURCE}:unregister`, { layer: "rules", name: "kg", projectId: "a" }],
  );

  assert.deepEqual(left(made), [[`${SOURCE}:register`, { ...source, timeoutMs: 200 }]]);
});

test("an end that names no layer and no project means all of them", () => {
  const made = journal(
    [`${SOURCE}:register`, { layer: "rules", name: " kg ", kind: "kg" }],
    [`${SOURCE}:register`, { layer: "retrieved", name: "kg", kind: "kg", projectId: "a" }],
    [`${SOURCE}:register`, { layer: "rules", name: "memory", kind: "memory" }],
    [`${WATCH}:start`, { projectId: "a" }],
    [`${SOURCE}:unregister`, { name: "kg" }],
  );

  assert.deepEqual(left(made).map(([, payload]) => payload.name ?? payload.projectId), ["memory", "a"]);
});

test("what could not be set up again is forgotten", () => {
  const made = journal([`${WATCH}:start`, { projectId: "a" }]);

  made.forget(`${WATCH}:start`, JSON.stringify({ projectId: "a" }));

  assert.deepEqual(left(made), []);
});
