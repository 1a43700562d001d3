// The JavaScript harness: isolated, repeatable, and removed afterwards.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DaemonError } from "@creonow/electron";
import { joinHarness, startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { QUICK, stateChange } from "./daemonFixtures.mjs";

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

test("a harness that cannot start leaves nothing either", PATIENCE, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "creonow empty "));
  const { TMPDIR, TMP, TEMP } = process.env;
  t.after(() => {
    rmSync(folder, { recursive: true, force: true });
    for (const [name, value] of Object.entries({ TMPDIR, TMP, TEMP })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  Object.assign(process.env, { TMPDIR: folder, TMP: folder, TEMP: folder });

  await assert.rejects(startHarness({ executable: join(tmpdir(), "no such daemon") }), { code: "NOT_FOUND" });
  await assert.rejects(joinHarness({ userData: join(tmpdir(), "no such folder"), waitMs: 1 }), { code: "DISCONNECTED" });

  assert.deepEqual([tmpdir(), readdirSync(folder)], [folder, []]);
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

  await harness.kill();
  const gone = await harness.failure("app:ping");
  await harness.start();
  const first = harness.daemon.pid;
  await harness.start();

  assert.deepEqual([gone.code, gone.retryable], ["DISCONNECTED", true]);
  assert.deepEqual((await harness.call("project:list")).items, [project]);
  assert.notEqual(harness.daemon.pid, first);
});

describe("a story", () => {
  const env = { CREONOW_E2E: "0", CREONOW_USER_DATA_DIR: join(tmpdir(), "never made") };
  let harness;
  before(async () => {
    harness = await startHarness({ executable: COMMAND, debug: true, env });
  });
  after(() => harness.stop());

  test("does not hang on what does not come: it is a TIMEOUT", PATIENCE, async () => {
    const silence = await harness.event("never:sent", { timeoutMs: 30 }).catch((error) => error);
    const unlogged = await harness.log("never_logged", { timeoutMs: 30 }).catch((error) => error);

    assert.equal(silence instanceof DaemonError, true);
    assert.deepEqual([silence.code, unlogged.code], ["TIMEOUT", "TIMEOUT"]);
  });

  test("has envelopes, errors, calls back and channels of its own", PATIENCE, async () => {
    harness.handle("host:echo", (params) => ({ heard: params }));

    const well = await harness.invoke("e2e:echo", { value: "墨" });
    const ill = await harness.invoke("no:such:channel");
    const answer = await harness.call("e2e:callback", { method: "host:echo", params: { name: "林远" } });

    assert.deepEqual(well, { ok: true, data: { value: "墨" } });
    assert.equal(ill.error.code, "IPC_CHANNEL_FORBIDDEN");
    assert.deepEqual(answer.value, { heard: { name: "林远" } });
    assert.equal((await harness.failure("project:setCurrent", { projectId: "prj_none" })).code, "NOT_FOUND");
    await assert.rejects(harness.failure("app:ping"), /app:ping answered/);
  });

  test("keeps to the conventions that E2E authors know, whatever the environment says", PATIENCE, async () => {
    const { channels } = harness.daemon.info;

    assert.equal(channels.includes("e2e:echo"), true);
    assert.equal((await harness.log("daemon_started")).level, "info");
    assert.equal(existsSync(env.CREONOW_USER_DATA_DIR), false);
  });

  test("looks into the daemon of an app, as its owner, and leaves it running", PATIENCE, async () => {
    const joined = await joinHarness({ userData: harness.userData });

    const { projectId } = await joined.makeProject("长夜", { "第一章.md": "夜🖋️" });
    const document = { projectId, documentId: "一", version: 1, text: "夜🖋️" };
    const { length } = await joined.call("context:document:sync", document);
    await joined.call("e2e:notify", { method: "novel:changed" });
    const event = await joined.event("novel:changed");
    const { info, pid } = joined.daemon;
    await joined.stop();

    assert.deepEqual([info.role, pid, length, event.seq], ["owner", harness.daemon.pid, 4, 1]);
    assert.equal((await joined.failure("app:ping")).code, "DISCONNECTED");
    assert.equal((await harness.call("project:list")).items.length, 1);
  });

  test("makes the AI say what it needs, also nonsense as a judge", PATIENCE, async () => {
    const { projectId } = await harness.makeProject("剧本", { "一.md": "夜。" });
    await harness.call("constraints:set", { projectId, constraints: { version: 1, items: ["林远从不下水。"] } });
    const place = { projectId, documentId: "一.md", cursorPosition: 1, skillId: "builtin:continue" };
    const usage = { inputTokens: 7, outputTokens: 3 };
    await harness.script({ steps: [{ text: "雨停了。", stop: "length", usage }], verdicts: ["no JSON"] });

    const { output, verdict, usage: used } = await harness.call("ai:skill:run", place);

    assert.deepEqual([output, used.inputTokens], ["雨停了。", 7]);
    assert.deepEqual(verdict.unchecked.map(({ code }) => code), ["model_unreadable"]);
    const wrong = await harness.script({ steps: [{ txt: "雨停了。" }] }).catch((error) => error);
    assert.equal(wrong.code, "INVALID_ARGUMENT");
  });
});

test("a story waits for an app that is still starting, kills its daemon, and joins the next one", PATIENCE, async (t) => {
  const app = { test: t, executable: COMMAND, userData: mkdtempSync(join(tmpdir(), "creonow app ")), restart: QUICK };
  t.after(() => rmSync(app.userData, { recursive: true, force: true, maxRetries: 5 }));
  const [story, { daemon }] = await Promise.all([joinHarness({ ...app, waitMs: 50_000 }), startHarness(app)]);
  const back = stateChange(daemon, "ready");

  await story.kill();
  await back;
  await story.start();

  assert.equal((await story.call("app:ping")).pong, true);
  assert.equal(story.daemon.pid, daemon.pid);
});
