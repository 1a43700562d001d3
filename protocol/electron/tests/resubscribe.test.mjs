// Subscriptions that are made again after a restart: begun, not ended, once each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Subscriptions } from "../resubscribe.mjs";

const WATCH = "context:creonow:watch";
const SOURCE = "context:source";

/** Record these calls, each [channel, payload]. */
function record(...calls) {
  const subscriptions = new Subscriptions();
  for (const [channel, payload] of calls) subscriptions.record(channel, JSON.stringify(payload));
  return subscriptions;
}

function remaining(subscriptions) {
  return subscriptions.entries().map(({ channel, text }) => [channel, JSON.parse(text)]);
}

test("what was begun and not ended remains, in order", () => {
  const subscriptions = record(
    [`${WATCH}:start`, { projectId: "a" }],
    [`${WATCH}:start`, { projectId: "b" }],
    ["app:ping", {}],
    [`${WATCH}:stop`, { projectId: "a" }],
    [`${WATCH}:stop`, { projectId: "never begun" }],
  );

  assert.deepEqual(remaining(subscriptions), [[`${WATCH}:start`, { projectId: "b" }]]);
});

test("what was begun twice remains once, as it was begun last", () => {
  const source = { layer: "rules", name: "kg", kind: "kg" };
  const subscriptions = record(
    [`${SOURCE}:register`, { ...source, timeoutMs: 100 }],
    [`${SOURCE}:register`, { ...source, projectId: "a" }],
    [`${SOURCE}:register`, { ...source, timeoutMs: 200 }],
    [`${SOURCE}:unregister`, { layer: "rules", name: "kg", projectId: "a" }],
  );

  assert.deepEqual(remaining(subscriptions), [[`${SOURCE}:register`, { ...source, timeoutMs: 200 }]]);
});

test("an end that names no layer and no project matches all of them", () => {
  const subscriptions = record(
    [`${SOURCE}:register`, { layer: "rules", name: " kg ", kind: "kg" }],
    [`${SOURCE}:register`, { layer: "retrieved", name: "kg", kind: "kg", projectId: "a" }],
    [`${SOURCE}:register`, { layer: "rules", name: "memory", kind: "memory" }],
    [`${WATCH}:start`, { projectId: "a" }],
    [`${SOURCE}:unregister`, { name: "kg" }],
  );

  assert.deepEqual(remaining(subscriptions).map(([, payload]) => payload.name ?? payload.projectId), ["memory", "a"]);
});

test("what could not be set up again is removed", () => {
  const subscriptions = record([`${WATCH}:start`, { projectId: "a" }]);

  subscriptions.remove(`${WATCH}:start`, JSON.stringify({ projectId: "a" }));

  assert.deepEqual(remaining(subscriptions), []);
});
