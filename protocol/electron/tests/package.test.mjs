// The npm package: complete, with types, without a build step, and its README runs as printed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createBridge } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { makeIpcMain, openWindow } from "./electron.mjs";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));
const PATIENCE = { timeout: 60_000 };
const WINDOWS = process.platform === "win32";
const AsyncFunction = (async () => {}).constructor;
const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json"));

/** The block of the README that begins with this file's name. */
function readmeBlock(name) {
  const blocks = [...read("README.md").matchAll(/(?<=```js\n)[^`]*(?:`[^`]+)*?(?=```)/g)].map(([block]) => block);
  return blocks.find((block) => block.startsWith(`// ${name}`)) ?? assert.fail(`the README prints no ${name}`);
}

test("it depends on nothing and runs no script", () => {
  assert.deepEqual([manifest.dependencies, manifest.scripts], [undefined, undefined]);
});

test("what is exported is declared, and what is declared is exported", async () => {
  for (const name of ["index", "harness"]) {
    const declared = [...read(`${name}.d.ts`).matchAll(/^export (?:declare )?(?:function|const|class) (\w+)/gm)];

    assert.deepEqual(declared.map(([, each]) => each).sort(), Object.keys(await import(`../${name}.mjs`)).sort());
  }
});

test("a main process in CommonJS can load it too", async () => {
  const resolved = createRequire(import.meta.url).resolve("@creonow/electron/preload");

  assert.match(resolved, /preload\.cjs$/);
  assert.equal(typeof (await import("@creonow/electron")).spawnDaemon, "function");
});

describe("packed, and installed in an empty folder,", () => {
  const folder = mkdtempSync(join(tmpdir(), "creonow README "));
  const { NODE_TEST_CONTEXT, ...outer } = process.env;
  const environment = { ...outer, CREONOW_DAEMON: COMMAND, CREONOW_USER_DATA_DIR: join(folder, "user data") };
  let files;

  const npm = (...words) =>
    execFileSync(WINDOWS ? "npm.cmd" : "npm", [...words, "--silent"], { cwd: folder, encoding: "utf8", shell: WINDOWS });
  const node = (words, env = environment) =>
    execFileSync(process.execPath, words, { cwd: folder, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };

  before(() => {
    write("package.json", '{ "private": true }');
    const [packed] = JSON.parse(npm("pack", FOLDER, "--json"));
    files = packed.files.map(({ path }) => path);
    npm("install", "--offline", "--no-audit", "--no-fund", `./${packed.filename}`);
    write("node_modules/electron/package.json", '{ "type": "module", "exports": "./app.mjs" }');
    for (const name of ["app.mjs", "electron.mjs"]) write(`node_modules/electron/${name}`, read(`tests/${name}`));
  });
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

  test("it holds what an app needs, and nothing of ours", () => {
    assert.deepEqual(files.filter((path) => path.includes("/")), []);
    assert.deepEqual(["LICENSE", "README.md"].filter((path) => !files.includes(path)), []);
  });

  test("the main process of the README runs as printed, and the daemon has a folder of its own", PATIENCE, () => {
    write("main.mjs", readmeBlock("main.mjs"));

    const { CREONOW_USER_DATA_DIR: _, ...unnamed } = environment;
    assert.equal(node(["main.mjs"], unnamed), "pong true\nquit\n");
    assert.deepEqual(readdirSync(join(folder, "app data")), ["creonow"]);
    assert.ok(existsSync(join(folder, "app data", "creonow", "logs", "main.log")));
  });

  test("the main process of the README says what is missing", PATIENCE, () => {
    write("main.mjs", readmeBlock("main.mjs"));

    assert.throws(() => node(["main.mjs"], { ...environment, CREONOW_DAEMON: join(folder, "nowhere") }), {
      status: 1,
      stdout: /^The daemon could not be started: creonowd was not found: CREONOW_DAEMON names .*nowhere, which is no program/,
    });
  });

  test("the story of the README passes as printed", PATIENCE, () => {
    write("story.test.mjs", readmeBlock("story.test.mjs"));

    const output = node(["--test-reporter=tap", "story.test.mjs"]);

    assert.match(output, /^ok 1 - a rule that changes is noticed/m);
    assert.match(output, /^ok 2 - an answer that breaks a rule is found/m);
  });

  test("its types are found the way a bundler finds them, and hold the example", PATIENCE, () => {
    const types = fileURLToPath(new URL("../../node_modules/@types", import.meta.url));
    const tsc = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
    const options = { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", target: "es2022" };
    const more = { lib: ["es2023", "dom"], types: ["node"], typeRoots: [types] };
    cpSync(join(FOLDER, "example"), join(folder, "example"), { recursive: true });
    write("example/tsconfig.json", JSON.stringify({ compilerOptions: { ...options, ...more }, include: ["*.ts"] }));

    assert.equal(node([tsc, "-p", "example"]), "");
  });
});

test("the preload and the page of the README run as printed", PATIENCE, async (t) => {
  const { daemon, home } = await startHarness({ test: t, executable: COMMAND });
  const ipcMain = makeIpcMain();
  const { webPreferences, dispose } = createBridge(ipcMain, daemon);
  t.after(dispose);
  const ours = 'require("@creonow/electron/preload");';
  const preload = join(home, "preload.cjs");
  writeFileSync(preload, readmeBlock("preload.cjs").replace(ours, () => `(() => {${read("preload.cjs")}\n})();`));
  const window = openWindow(ipcMain, { ...webPreferences, preload });
  const words = ["window", "name", "refresh", "syncOpenDocuments", "request", "console"];
  const warnings = [];

  await new AsyncFunction(...words, `${readmeBlock("renderer.js")}; stop(); return run;`)(
    window, "Long night", () => {}, () => {}, {}, { warn: (code) => warnings.push(code) },
  );

  assert.deepEqual([Object.keys(window.mine), warnings, window.complaints], [[], [], []]);
  assert.equal((await daemon.call("project:list")).items.length, 1);
});
