// The JavaScript harness: isolated, repeatable, and gone afterwards.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { DaemonError } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";

const PATIENCE = { timeout: 60_000 };

test("a story makes a project, waits for an event, reads the log, and leaves nothing", PATIENCE, async () => {
  const harness = await startHarness({ executable: COMMAND });
  const { projectId, rootPath } = await harness.makeProject("长夜", { "卷一/第一章.md": "夜。\n" });
  await harness.call("context:creonow:ensure", { projectId });
  await harness.call("context:creonow:watch:start", { projectId });

  writeFileSync(join(rootPath, ".creonow", "rules", "style.md"), "少用形容词。");
  const changed = await harness.event("context:creonow:changed", { where: (event) => event.projectId === projectId });
  const line = await harness.log("context_watch_started");
  const written = existsSync(join(rootPath, "卷一", "第一章.md"));
  await harness.stop();

  assert.deepEqual(changed.paths, [".creonow/rules/style.md"]);
  assert.deepEqual([line.level, written], ["info", true]);
  assert.equal((await harness.logs()).length, 0);
  assert.equal(existsSync(harness.home), false);
});

test("two harnesses know nothing of each other", PATIENCE, async (t) => {
  const [one, two] = await Promise.all([1, 2].map(() => startHarness({ test: t, executable: COMMAND })));

  await one.makeProject();

  assert.equal((await one.call("project:list")).items.length, 1);
  assert.deepEqual((await two.call("project:list")).items, []);
  assert.notEqual(dirname(one.userData), dirname(two.userData));
});

test("on request ids and clock are the same in every run", PATIENCE, async (t) => {
  const runs = await Promise.all(
    [1, 2].map(async () => {
      const harness = await startHarness({ test: t, executable: COMMAND, deterministic: true });
      const { projectId } = await harness.makeProject();
      await harness.call("e2e:notify", { method: "novel:changed", count: 2 });
      const events = [await harness.event("novel:changed"), await harness.event("novel:changed")];
      return { projectId, nowMs: (await harness.call("app:ping")).nowMs, events };
    }),
  );

  assert.deepEqual(runs[0], runs[1]);
  assert.match(runs[0].projectId, /^prj_0+1$/);
});

test("a killed daemon is started again on the same user data", PATIENCE, async (t) => {
  const harness = await startHarness({ test: t, executable: COMMAND });
  const project = await harness.makeProject();

  harness.kill();
  await assert.rejects(harness.call("e2e:sleep", { ms: 600_000 }), { code: "DISCONNECTED" });
  await harness.start();

  assert.deepEqual((await harness.call("project:list")).items, [project]);
});

test("what does not come is a TIMEOUT and not a hang", PATIENCE, async (t) => {
  const harness = await startHarness({ test: t, executable: COMMAND });

  const silence = await harness.event("never:sent", { timeoutMs: 30 }).catch((error) => error);
  const unlogged = await harness.log("never_logged", { timeoutMs: 30 }).catch((error) => error);

  assert.equal(silence instanceof DaemonError, true);
  assert.deepEqual([silence.code, unlogged.code], ["TIMEOUT", "TIMEOUT"]);
});

test("envelopes, debug mode and the harness's own channels are there", PATIENCE, async (t) => {
  const harness = await startHarness({ test: t, executable: COMMAND, debug: true });

  assert.deepEqual((await harness.invoke("e2e:echo", { value: "墨" })).data, { value: "墨" });
  assert.equal((await harness.invoke("no:such:channel")).error.code, "IPC_CHANNEL_FORBIDDEN");
});
