// A daemon that is kept alive: what settles, waits and survives when it is lost, and when it has failed.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { delayAfter } from "../daemon.mjs";
import { failure, fakeDaemon, QUICK, realDaemon, stateChange } from "./daemonFixtures.mjs";

const PATIENCE = { timeout: 60_000 };

describe("a daemon that is lost", () => {
  test("every pending call settles before the daemon is back; those made meanwhile wait and succeed", PATIENCE, async (t) => {
    const daemon = await realDaemon(t);
    const first = daemon.pid;
    const order = [];
    const pending = Array.from({ length: 100 }, () => daemon.call("e2e:sleep", { ms: 600_000 }));
    const settled = Promise.all(pending.map(failure)).then((errors) => {
      order.push("settled");
      return errors;
    });
    daemon.onState((state) => order.push(state));
    const down = stateChange(daemon, "restarting");
    await daemon.call("app:ping");

    process.kill(first, "SIGKILL");
    const errors = await settled;
    await down;
    const answers = await Promise.all([..."abc"].map((value) => daemon.call("e2e:echo", { value })));

    assert.deepEqual(order, ["settled", "restarting", "ready"]);
    assert.deepEqual([...new Set(errors.map(({ code, retryable }) => `${code} ${retryable}`))], ["DISCONNECTED true"]);
    assert.deepEqual(answers.map(({ value }) => value), ["a", "b", "c"]);
    assert.notEqual(daemon.pid, first);
  });

  test("a waiting call can be cancelled and times out, and the queue has a limit", PATIENCE, async (t) => {
    const never = { attempts: 1, firstDelayMs: 600_000, longestDelayMs: 600_000 };
    const { started, starts } = fakeDaemon(t, "well", { waitMs: 400, restart: never });
    const daemon = await started;
    const down = stateChange(daemon, "restarting");
    const controller = new AbortController();

    await failure(daemon.call("fake:die"));
    await down;
    const canceled = failure(daemon.call("any:thing", {}, { signal: controller.signal }));
    const late = failure(daemon.call("any:thing"));
    controller.abort();
    const crowd = Array.from({ length: 300 }, () => failure(daemon.call("any:thing")));

    assert.equal((await canceled).code, "CANCELED");
    assert.deepEqual([(await late).code, (await late).retryable], ["DISCONNECTED", true]);
    const codes = (await Promise.all(crowd)).map(({ code }) => code);
    assert.equal(codes.filter((code) => code === "IPC_BACKPRESSURE").length, 300 - 255);
    assert.deepEqual([daemon.state, starts()], ["restarting", 1]);
  });

  test("listeners, handlers and what was watched survive; what cannot be restored is reported", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK });
    const [kept, ended, lost] = await Promise.all(["长夜", "短昼", "残卷"].map((name) => harness.makeProject(name)));
    for (const { projectId } of [kept, ended, lost]) {
      await harness.call("context:creonow:ensure", { projectId });
      await harness.call("context:creonow:watch:start", { projectId });
    }
    await harness.call("context:creonow:watch:stop", { projectId: ended.projectId });
    await harness.call("project:delete", { projectId: lost.projectId });
    harness.daemon.handle("host:echo", () => "still here");

    harness.kill();
    const { restarts, restored } = await harness.event("$/restarted");
    writeFileSync(join(kept.rootPath, ".creonow", "rules", "style.md"), "少用形容词。");
    const changed = await harness.event("context:creonow:changed", {
      where: ({ paths }) => paths.includes(".creonow/rules/style.md"),
    });

    const [again, gone] = restored;
    assert.deepEqual([restarts, restored.length, again.ok, gone.ok], [1, 2, true, false]);
    assert.deepEqual([again.payload, gone.error.code], [{ projectId: kept.projectId }, "NOT_FOUND"]);
    assert.equal(changed.projectId, kept.projectId);
    assert.equal((await harness.call("e2e:callback", { method: "host:echo" })).value, "still here");
  });

  test("a source of the main process is asked again after a restart", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK });
    const { projectId } = await harness.makeProject("长夜", { "第一章.md": "林远推开门。\n" });
    const place = { projectId, documentId: "第一章.md", cursorPosition: 6, skillId: "unknown:any" };
    const chunks = [{ source: "kg:林远", content: "林远怕水。", score: 0.9 }];
    harness.daemon.handle("context:source:fetch", ({ name }) => ({ chunks: name === "kg" ? chunks : [] }));
    await harness.call("context:source:register", { layer: "retrieved", name: "kg", kind: "kg" });

    const before = await harness.call("context:assemble", place);
    harness.kill();
    const { restored } = await harness.event("$/restarted");
    const after = await harness.call("context:assemble", place);

    assert.deepEqual(restored.map(({ channel, ok }) => [channel, ok]), [["context:source:register", true]]);
    assert.equal(before.prompt.includes("林远怕水。"), true);
    assert.equal(after.promptHash, before.promptHash);
  });

  test("a daemon that keeps dying has failed, and can be started again by hand", PATIENCE, async (t) => {
    const { started, starts } = fakeDaemon(t, "well", { restart: { ...QUICK, attempts: 2 } });
    const daemon = await started;
    const failed = stateChange(daemon, "failed");

    daemon.onState((state) => state === "ready" && failure(daemon.call("fake:die")));
    await failure(daemon.call("fake:die"));
    await failed;
    const refused = await failure(daemon.call("any:thing"));
    const born = starts();
    await daemon.restart();

    assert.deepEqual([refused.code, refused.retryable, refused.details.exitCode], ["DISCONNECTED", true, 9]);
    assert.equal(born, 3);
    assert.equal(starts() > born, true);
  });

  test("a watcher may restart a daemon that has failed", PATIENCE, async (t) => {
    const daemon = await fakeDaemon(t, "well", { restart: false }).started;
    const first = daemon.pid;
    const again = new Promise((resolve) => {
      daemon.onState((state) => state === "failed" && resolve(daemon.restart()));
    });

    await failure(daemon.call("fake:die"));
    await again;

    assert.notEqual((await daemon.call("any:thing")).pid, first);
  });

  test("with `restart: false` the first end is final", PATIENCE, async (t) => {
    const daemon = await fakeDaemon(t, "well", { restart: false }).started;
    const failed = stateChange(daemon, "failed");

    await failure(daemon.call("fake:die"));
    await failed;

    await assert.rejects(daemon.ready(), { code: "DISCONNECTED" });
  });

  test("a daemon that closes its output is replaced, though its process lives", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "well");
    const daemon = await started;
    const first = daemon.pid;

    const error = await failure(daemon.call("fake:deafen"));
    const { pid } = await daemon.call("any:thing");

    assert.equal(error.code, "DISCONNECTED");
    assert.notEqual(pid, first);
  });

  test("under load nothing is lost, mixed up or left hanging", PATIENCE, async (t) => {
    const daemon = await realDaemon(t);
    let killed = 0;
    const counts = { answered: 0, DISCONNECTED: 0, SHUTTING_DOWN: 0 };
    const work = async (worker) => {
      for (let round = 0; round < 40; round += 1) {
        const value = `${worker}-${round}-${"墨".repeat(500)}`;
        const { ok, data, error } = await daemon.invoke("e2e:echoInTask", { value });
        assert.equal(ok ? data.value : value, value);
        counts[ok ? "answered" : error.code] += 1;
        if (worker === 0 && round % 20 === 10 && daemon.pid) killed += process.kill(daemon.pid, "SIGKILL");
      }
    };

    await Promise.all(Array.from({ length: 20 }, (_, worker) => work(worker)));

    assert.equal(killed, 2);
    assert.equal(counts.answered + counts.DISCONNECTED + counts.SHUTTING_DOWN, 20 * 40);
    assert.equal(counts.answered > 400, true);
  });
});

describe("a daemon that starts again", () => {
  test("a daemon that starts at the third try is ready", PATIENCE, async (t) => {
    const { started, starts } = fakeDaemon(t, "broken twice");

    const daemon = await started;

    assert.deepEqual([daemon.state, starts()], ["ready", 3]);
  });

  test("a second daemon on the same user data waits for the first to leave", PATIENCE, async (t) => {
    const first = await realDaemon(t);

    const second = realDaemon(t, { userData: first.userData, restart: { firstDelayMs: 50 } });
    await first.stop();

    assert.equal((await (await second).call("app:ping")).pong, true);
  });

  test("each pause before the next start is twice as long, to a limit", () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 50].map((failures) => delayAfter(failures));

    assert.deepEqual(pauses, [0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    assert.equal(delayAfter(3, { firstDelayMs: 1, longestDelayMs: 3 }), 3);
  });

  test("a daemon that is still starting, or waits to start again, is stopped at once", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "well", { restart: { attempts: 5, firstDelayMs: 600_000, longestDelayMs: 600_000 } });
    const daemon = await started;
    const down = stateChange(daemon, "restarting");
    await failure(daemon.call("fake:die"));
    await down;
    const waiting = failure(daemon.call("any:thing"));

    await daemon.stop();

    assert.equal((await waiting).code, "SHUTTING_DOWN");
    assert.equal(daemon.state, "stopped");
  });

  test("a restart that was asked for loses no call", PATIENCE, async (t) => {
    const daemon = await realDaemon(t);
    const first = daemon.pid;

    const again = daemon.restart();
    const answers = [];
    for (const value of "abc") answers.push(await daemon.call("e2e:echoInTask", { value }));
    await again;

    assert.deepEqual(answers.map(({ value }) => value), ["a", "b", "c"]);
    assert.notEqual(daemon.pid, first);
  });
});
