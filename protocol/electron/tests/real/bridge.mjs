// The bridge in a real Electron: what pages can do, and what becomes of them.
import assert from "node:assert/strict";
import { readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launch, startDisplay } from "./launch.mjs";

const PATIENCE = { timeout: 120_000 };
const MIB = 1024 * 1024;
const SECRET = "sk-THIS_SHOULD_BE_REDACTED";

describe("in a real Electron", PATIENCE, () => {
  let app, page, userData, stopDisplay;
  before(async () => {
    stopDisplay = await startDisplay();
    ({ app, page, userData } = await launch());
  });
  after(async () => {
    await app.close();
    stopDisplay();
  });

  const invoke = (...request) => page.evaluate((given) => window.creonow.invoke(...given), request);
  const answerOf = (id, channel = "app:ping") =>
    app.evaluate(
      ({ BrowserWindow }, [id, channel]) =>
        BrowserWindow.fromId(id).webContents.executeJavaScript(`window.creonow.invoke(${JSON.stringify(channel)})`),
      [id, channel],
    );

  test("a page has four functions, a sandbox and nothing of Node", async () => {
    const found = await page.evaluate(() => ({
      functions: Object.keys(window.creonow),
      node: [typeof require, typeof process, typeof module, typeof Buffer],
      frozen: Object.isFrozen(window.creonow),
    }));

    assert.deepEqual(found.functions, ["invoke", "cancel", "chooseProject", "on"]);
    assert.deepEqual(found.node, ["undefined", "undefined", "undefined", "undefined"]);
    assert.equal(found.frozen, true);
  });

  test("an author opens a novel, writes, and sees what the model will see", async () => {
    const made = await invoke("project:create", { name: "长夜" });
    const { projectId, rootPath } = made.data;
    const ensured = await invoke("context:creonow:ensure", { projectId });
    await invoke("context:document:sync", { projectId, documentId: "第一章.md", version: 1, text: "夜里下着雨。" });
    const place = { projectId, documentId: "第一章.md", cursorPosition: 6, skillId: "builtin:continue" };
    const assembled = await invoke("context:assemble", place);
    const counted = await invoke("tokens:count", { text: assembled.data.prompt });
    const run = await invoke("ai:skill:run", place);
    const changed = page.evaluate(
      () => new Promise((resolve) => window.creonow.on("context:creonow:changed", ({ paths }) => resolve(paths))),
    );
    await invoke("context:creonow:watch:start", { projectId });
    writeFileSync(join(rootPath, ".creonow", "rules", "style.md"), "多用动词。\n");

    assert.deepEqual([made.ok, ensured.ok, assembled.ok, run.ok], [true, true, true, true]);
    assert.match(assembled.data.prompt, /夜里下着雨/);
    assert.equal(counted.data.tokens, assembled.data.tokenCount);
    assert.deepEqual(await changed, [".creonow/rules/style.md"]);
  });

  test("events arrive in order, and a key cancels", async () => {
    const found = await page.evaluate(async () => {
      const seen = [];
      const all = new Promise((resolve) => {
        const stop = window.creonow.on("novel:changed", ({ number }) => {
          if (seen.push(number) === 20) resolve(stop());
        });
      });
      for (let number = 0; number < 20; number += 1) {
        await window.creonow.invoke("e2e:notify", { method: "novel:changed", params: { number } });
      }
      await all;
      const sleeping = window.creonow.invoke("e2e:sleep", { ms: 60_000 }, { key: "draft" });
      const { data } = await window.creonow.cancel("draft");
      return { seen, canceled: data.canceled, slept: (await sleeping).error?.code };
    });

    assert.deepEqual(found.seen, [...Array(20).keys()]);
    assert.deepEqual([found.canceled, found.slept], [1, "CANCELED"]);
  });

  test("garbage gets an envelope, never an exception", async () => {
    const codes = await page.evaluate(async () => {
      const cycle = {};
      cycle.self = cycle;
      let deep = {};
      for (let level = 0; level < 1500; level += 1) deep = { deep };
      const garbage = [
        () => {}, cycle, 1n, NaN, Infinity, Symbol("x"), new Map([[1, 2]]), new Set([1]), new Proxy({ a: 1 }, {}), deep,
        new Date(NaN), /x/, new Error("x"), document.body, window, Promise.resolve(1), new WeakMap(), "\ud800", new ArrayBuffer(8),
        class A {}, Object.create(null), [,,1], new Proxy([], {}), { get a() { throw new Error("a"); } }, new Blob(["x"]), undefined, null,
      ];
      const codes = [];
      for (const value of garbage) {
        const answer = await window.creonow.invoke("e2e:echo", { value }).catch((error) => ({ thrown: String(error) }));
        codes.push(answer.thrown ?? answer.error?.code ?? "ok");
      }
      for (const channel of ["no:such", "session:grant", "__proto__", "", 7, null, new Proxy({}, {})]) {
        const answer = await window.creonow.invoke(channel, {}).catch((error) => ({ thrown: String(error) }));
        codes.push(answer.thrown ?? answer.error.code);
      }
      return codes;
    });

    const known = ["ok", "INVALID_ARGUMENT", "IPC_CHANNEL_FORBIDDEN"];
    assert.deepEqual(codes.filter((code) => !known.includes(code)), []);
    assert.equal(codes[8], "INVALID_ARGUMENT");
    assert.equal((await invoke("app:ping")).ok, true);
  });

  test("nine MiB go through, more is refused, and a thousand calls at once are answered", async () => {
    const found = await page.evaluate(async (MIB) => {
      const echo = (size) => window.creonow.invoke("e2e:echo", { value: "x".repeat(size) });
      const [big, over] = [await echo(9 * MIB), await echo(10 * MIB)];
      const many = await Promise.all(Array.from({ length: 1000 }, (_, n) => window.creonow.invoke("e2e:echo", { value: n })));
      return { big: big.data.value.length, over: over.error.code, many: many.every(({ data }, n) => data.value === n) };
    }, MIB);

    assert.deepEqual(found, { big: 9 * MIB, over: "IPC_PAYLOAD_TOO_LARGE", many: true });
  });

  test("a page that is loaded again, and a second window, have connections of their own", async () => {
    await page.reload();
    const id = await app.evaluate(() => globalThis.underTest.open());
    const served = await app.evaluate(() => globalThis.underTest.open("app://creonow/index.html"));

    assert.equal((await invoke("app:ping")).ok, true);
    assert.equal((await answerOf(id)).ok, true);
    assert.equal((await answerOf(served)).ok, true);
    await app.evaluate(({ BrowserWindow }, ids) => ids.forEach((id) => BrowserWindow.fromId(id).destroy()), [id, served]);
    assert.equal((await invoke("app:ping")).ok, true);
  });

  test("foreign pages and frames are refused", async (t) => {
    const server = createServer((_request, response) => response.end("<title>elsewhere</title>")).listen(0, "127.0.0.1");
    t.after(() => server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const urls = ["data:text/html,hi", "about:blank", `http://127.0.0.1:${server.address().port}/`];

    for (const url of urls) {
      const id = await app.evaluate((_electron, url) => globalThis.underTest.open(url), url);
      assert.equal((await answerOf(id)).error.code, "FORBIDDEN", url);
      await app.evaluate(({ BrowserWindow }, id) => BrowserWindow.fromId(id).destroy(), id);
    }
    const inFrame = await page.evaluate(async () => {
      const frame = document.body.appendChild(document.createElement("iframe"));
      return typeof frame.contentWindow.creonow;
    });
    assert.equal(inFrame, "undefined");
  });

  test("the viewer opens in a window of the app, and in no frame of a page", async () => {
    const opened = app.waitForEvent("window");
    await app.evaluate(async ({ BrowserWindow }, name) => {
      const { daemon } = globalThis.underTest;
      const { projectId } = await daemon.call("project:create", { name });
      await daemon.call("context:document:sync", { projectId, documentId: "第一章.md", version: 1, text: "灯灭了。" });
      const { url } = await daemon.call("viewer:open", { projectId, documentId: "第一章.md" });
      const window = new BrowserWindow({ show: false, webPreferences: { sandbox: true } });
      await window.loadURL(url);
    }, "渡口");
    const viewer = await opened;
    await viewer.waitForFunction(() => document.body.innerText.includes("灯灭了"));
    const refused = app.evaluate(
      ({ BrowserWindow }) =>
        new Promise((resolve) => {
          const [window] = BrowserWindow.getAllWindows().filter((one) => one.webContents.getURL().startsWith("file:"));
          window.webContents.once("did-fail-load", (_event, _code, description, _url, isTop) => resolve([description, isTop]));
        }),
    );
    await page.evaluate((url) => {
      document.body.append(Object.assign(document.createElement("iframe"), { src: url }));
    }, viewer.url());

    assert.deepEqual(await refused, ["ERR_BLOCKED_BY_RESPONSE", false]);
    await viewer.close();
  });

  test("a secret and a file that is too long: the page runs a skill, and the viewer's window shows what became of both", async () => {
    const { projectId, rootPath } = (await invoke("project:create", { name: "门禁" })).data;
    await invoke("context:creonow:ensure", { projectId });
    await page.evaluate(() => {
      globalThis.changed = [];
      window.creonow.on("context:creonow:changed", ({ paths }) => globalThis.changed.push(...paths));
    });
    await invoke("context:creonow:watch:start", { projectId });
    const write = async (path, text) => {
      writeFileSync(join(rootPath, path), text);
      await page.waitForFunction((path) => globalThis.changed.includes(path), path);
    };
    await write(".creonow/rules/style.md", `克制。apiKey=${SECRET}\n`);
    await write(".creonow/settings/world.md", Array.from({ length: 2500 }, (_, n) => `${n}. 江水漫过石阶。\n\n`).join(""));
    writeFileSync(join(rootPath, "第一章.md"), "夜里下着雨。\n");
    const place = { projectId, documentId: "第一章.md", cursorPosition: 6, skillId: "builtin:continue" };
    const run = await invoke("ai:skill:run", place);
    const assembled = await invoke("context:assemble", place);
    const opened = app.waitForEvent("window");
    await app.evaluate(async ({ BrowserWindow }, place) => {
      const { url } = await globalThis.underTest.daemon.call("viewer:open", place);
      await new BrowserWindow({ show: false, width: 1440, height: 900, webPreferences: { sandbox: true } }).loadURL(url);
    }, { projectId, documentId: place.documentId });
    const viewer = await opened;
    const layer = (name) => viewer.getByTestId(`ai-context-layer-${name}`);
    const shows = (name, text) =>
      viewer.waitForFunction(([name, text]) => document.querySelector(`[data-testid=ai-context-layer-${name}]`).innerText.includes(text), [name, text]);
    const toggle = viewer.getByTestId("ai-context-toggle");
    await viewer.locator("#state[data-state=ready]").waitFor({ state: "attached" });
    if ((await toggle.getAttribute("aria-expanded")) !== "true") await toggle.click();
    for (const name of ["rules", "settings", "retrieved", "immediate"]) await layer(name).waitFor();
    await layer("rules").locator("summary").filter({ hasText: /style|文风/i }).first().click();
    await shows("rules", "apiKey=***REDACTED***");
    await shows("rules", ".creonow/rules/style.md");
    await layer("settings").locator("summary").filter({ hasText: "world" }).first().click();
    await shows("settings", ".creonow/settings/world.md");
    await viewer.locator("#tab-left-out").click();
    await viewer.getByTestId("ai-context-trim").locator(".piece", { hasText: "world" }).waitFor();

    assert.equal(run.ok, true);
    assert.match(assembled.data.prompt, /apiKey=\*\*\*REDACTED\*\*\*/);
    const shown = [JSON.stringify([run, assembled]), await viewer.content()].join("");
    assert.deepEqual([shown.includes(SECRET), shown.includes(userData), (await viewer.content()).includes(rootPath)], [false, false, false]);
    await viewer.close();
  });

  test("a renderer that crashes leaves nothing behind, and its window works again", async () => {
    const listeners = () =>
      app.evaluate(({ webContents }) => webContents.getAllWebContents().map((one) => one.listenerCount("destroyed")).sort());
    const id = await app.evaluate(() => globalThis.underTest.open());
    await answerOf(id);
    const before = await listeners();

    for (let crash = 0; crash < 2; crash += 1) {
      await app.evaluate(async ({ BrowserWindow }, id) => {
        const window = BrowserWindow.fromId(id);
        const crashed = new Promise((resolve) => window.webContents.once("render-process-gone", resolve));
        window.webContents.forcefullyCrashRenderer();
        await crashed;
        await new Promise((resolve) => setTimeout(resolve, 500)); // sooner, Electron 42 itself dies
        await window.loadFile(globalThis.underTest.page);
      }, id);
      assert.equal((await answerOf(id)).ok, true);
    }

    assert.deepEqual(await listeners(), before);
    await app.evaluate(({ BrowserWindow }, id) => BrowserWindow.fromId(id).destroy(), id);
  });

  test("the daemon has none of Chromium's files open", { skip: process.platform !== "linux" && "lists descriptors in /proc" }, async () => {
    const { pid } = (await invoke("app:ping")).data;
    const open = readdirSync(`/proc/${pid}/fd`).map((number) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${number}`);
      } catch {
        return ""; // closed meanwhile
      }
    });
    // What is mounted is reported through `mountinfo`, which the daemon watches.
    const system = ["/dev/null", `/proc/${pid}/mountinfo`];
    const ours = (path) => !path.startsWith("/") || path.startsWith(userData) || system.includes(path);

    assert.deepEqual(open.filter((path) => !ours(path)), []);
  });

  test("forty calls that wait when the daemon is killed all fail, and the next one works", async () => {
    const { pid } = (await invoke("app:ping")).data;
    const waiting = page.evaluate(async () => {
      const calls = Array.from({ length: 40 }, () => window.creonow.invoke("e2e:sleep", { ms: 60_000 }));
      await window.creonow.invoke("app:ping");
      document.title = "waiting";
      return (await Promise.all(calls)).map(({ error }) => error.code);
    });
    await page.waitForFunction(() => document.title === "waiting");
    process.kill(pid, "SIGKILL");

    assert.deepEqual(new Set(await waiting), new Set(["DISCONNECTED"]));
    const next = await invoke("app:ping");
    assert.equal(next.ok, true);
    assert.notEqual(next.data.pid, pid);
  });

  test("nothing was thrown in the main process", async () => {
    assert.deepEqual(await app.evaluate(() => globalThis.underTest.faults), []);
  });
});
