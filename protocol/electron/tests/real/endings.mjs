// Every way in which an app can end takes the daemon with it; and a packed app needs no Python.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { launch, programOf, startDisplay, untilGone } from "./launch.mjs";

const PATIENCE = { timeout: 120_000 };
const PACKED = {
  "the folder in its resources": [process.env.CREONOW_PACKED_APP, /resources\/creonowd\/creonowd$/],
  "the platform's package unpacked beside its archive": [
    process.env.CREONOW_APP_WITH_PACKAGE,
    /resources\/app\.asar\.unpacked\/node_modules\/@creonow\/daemon-[^/]+\/creonowd\/creonowd$/,
  ],
};
const ENDINGS = {
  "its window is closed": ({ app }) => app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows().forEach((one) => one.close())),
  "it quits": ({ app }) => app.evaluate(({ app }) => setImmediate(() => app.quit())),
  "it is asked to quit three times": ({ app }) =>
    app.evaluate(({ app }) => setImmediate(() => [1, 2, 3].forEach(() => app.quit()))),
  "it exits without a farewell": ({ app }) => app.evaluate(({ app }) => setImmediate(() => app.exit(0))),
  "SIGTERM comes": ({ app }) => app.process().kill("SIGTERM"),
  "SIGINT comes": ({ app }) => app.process().kill("SIGINT"),
  "SIGHUP comes": ({ app }) => app.process().kill("SIGHUP"),
  "it is killed": ({ app }) => app.process().kill("SIGKILL"),
};

describe("nothing stays behind when", { ...PATIENCE, concurrency: 2 }, () => {
  let stopDisplay;
  before(async () => {
    stopDisplay = await startDisplay();
  });
  after(() => stopDisplay());
  for (const [name, end] of Object.entries(ENDINGS)) {
    test(name, async () => {
      const started = await launch();
      const pids = [started.app.process().pid, started.daemonPid];

      await Promise.resolve(end(started)).catch(() => {}); // it may be gone before it has answered

      await Promise.all(pids.map(untilGone));
    });
  }

  for (const [what, [executable, place]] of Object.entries(PACKED)) {
    test(`a packed app with ${what} has run, without Python and without a variable`, async () => {
      const { app, page, daemonPid } = await launch({
        executable,
        args: [],
        env: { PATH: "", CREONOW_DAEMON: "", CREONOW_ELECTRON: "" },
      });

      const counted = await page.evaluate(() => window.creonow.invoke("tokens:count", { text: "第一章" }));
      const program = await programOf(daemonPid);
      await app.evaluate(({ app }) => setImmediate(() => app.quit())).catch(() => {});
      await untilGone(daemonPid);

      assert.deepEqual([counted.data.tokens, counted.data.countKind], [2, "exact"]);
      if (program) assert.match(program, place);
    });
  }
});
