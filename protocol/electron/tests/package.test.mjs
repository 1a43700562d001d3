// What an app installs: complete, declared, and without anything to build.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { COMMAND } from "../../tests/daemon.mjs";

const FOLDER = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json"));

test("it depends on nothing and runs no script", () => {
  assert.deepEqual([manifest.dependencies, manifest.scripts], [undefined, undefined]);
});

test("what is exported is declared, and what is declared is exported", async () => {
  for (const name of ["index", "harness"]) {
    const declared = [...read(`${name}.d.ts`).matchAll(/^export (?:declare )?(?:function|const|class) (\w+)/gm)];

    assert.deepEqual(declared.map(([, each]) => each).sort(), Object.keys(await import(`../${name}.mjs`)).sort());
  }
});

test("the tarball holds every file that its modules and declarations name", () => {
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const shell = process.platform === "win32";
  const listed = execFileSync(npm, ["pack", "--dry-run", "--json", "--silent"], { cwd: FOLDER, encoding: "utf8", shell });
  const files = JSON.parse(listed)[0].files.map(({ path }) => path);
  const sources = files.filter((path) => /\.(mjs|cjs|d\.ts|d\.cts)$/.test(path));

  const named = sources.flatMap((path) =>
    [...read(path).matchAll(/from "\.\/([\w.-]+)"/g)].map(([, target]) =>
      path.includes(".d.") ? target.replace(/\.js$/, ".d.ts") : target,
    ),
  );
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === "string" ? [entry.slice(2)] : Object.values(entry).map((target) => target.slice(2)),
  );

  assert.deepEqual([...new Set([...named, ...entries])].filter((path) => !files.includes(path)), []);
  assert.deepEqual(files.filter((path) => path.startsWith("tests") || path.startsWith("example")), []);
});

test("a main process in CommonJS can load it too", async () => {
  const resolved = createRequire(import.meta.url).resolve("@creonow/electron/preload");

  assert.match(resolved, /preload\.cjs$/);
  assert.equal(typeof (await import("@creonow/electron")).spawnDaemon, "function");
});

test("the main process of the README runs as printed", { timeout: 60_000 }, (t) => {
  const [main] = /(?<=```js\n)\/\/ main\.mjs\n[^`]+/.exec(read("README.md"));
  const places = { electron: "./app.mjs", "@creonow/electron": "../index.mjs" };
  const modules = Object.entries(places).map(([name, path]) => [name, new URL(path, import.meta.url).href]);
  const hook = `const modules = new Map(${JSON.stringify(modules)});
    export const resolve = (name, context, next) => next(modules.get(name) ?? name, context);`;
  const register = `import { register } from "node:module"; register("data:text/javascript,${encodeURIComponent(hook)}");`;
  const folder = mkdtempSync(join(tmpdir(), "creonow README "));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const program = join(folder, "main.mjs");
  writeFileSync(program, main);

  const said = execFileSync(process.execPath, ["--import", `data:text/javascript,${encodeURIComponent(register)}`, program], {
    env: { ...process.env, CREONOW_DAEMON: COMMAND, CREONOW_USER_DATA_DIR: folder },
    encoding: "utf8",
  });

  assert.equal(said, "pong true\nquit\n");
});
