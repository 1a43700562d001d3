// Where the daemon and its data are: in JavaScript the same answer as in Python.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { COMMAND } from "../../tests/daemon.mjs";
import { findExecutable, userDataFolder } from "../executable.mjs";

const WINDOWS = process.platform === "win32";
const NAME = WINDOWS ? "creonowd.exe" : "creonowd";
const PYTHON = join(dirname(COMMAND), WINDOWS ? "python.exe" : "python");

test("user data is where the daemon would put it", () => {
  const code = "from creonowd.settings import user_data_dir; print(user_data_dir())";
  const paths = ["~/墨 ink", "relative", join(tmpdir(), "a b")].map((path) => ({ CREONOW_USER_DATA_DIR: path }));
  const places = [{}, ...paths, { CREONOW_USER_DATA_DIR: "" }, { XDG_DATA_HOME: tmpdir() }, { XDG_DATA_HOME: "relative" }];

  for (const place of places) {
    const { CREONOW_USER_DATA_DIR, XDG_DATA_HOME, ...rest } = process.env;
    const env = { ...rest, PYTHONUTF8: "1", ...place };
    const python = execFileSync(PYTHON, ["-c", code], { env, encoding: "utf8" }).trim();

    assert.equal(userDataFolder(undefined, env), python);
  }
  assert.equal(userDataFolder("~/named", { CREONOW_USER_DATA_DIR: "/elsewhere" }), join(homedir(), "named"));
});

test("it is taken from the option, the resources, the platform's package, CREONOW_DAEMON or PATH, in that order", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "creonow app "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const places = ["resources/creonowd", "package/creonowd", "named", "path"].map((place) => join(folder, place, NAME));
  for (const path of places) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "");
    chmodSync(path, 0o755);
  }
  const [packaged, installed, named, onPath] = places;
  const environment = { PATH: dirname(onPath), CREONOW_DAEMON: named };
  const asked = [];
  const lookUp = (name) => {
    asked.push(name);
    return join(folder, "package");
  };
  const none = () => undefined;

  assert.deepEqual(findExecutable(onPath, environment, join(folder, "resources"), lookUp), { path: onPath, origin: "option" });
  assert.deepEqual(findExecutable(undefined, environment, join(folder, "resources"), lookUp), { path: packaged, origin: "resources" });
  assert.deepEqual(findExecutable(undefined, environment, folder, lookUp), { path: installed, origin: "package" });
  assert.deepEqual(findExecutable(undefined, environment, undefined, none), { path: named, origin: "environment" });
  assert.deepEqual(findExecutable(undefined, { PATH: dirname(onPath) }, undefined, none), { path: onPath, origin: "path" });
  assert.equal(asked[0], `@creonow/daemon-${process.platform}-${process.arch}`);
});

test("a name in CREONOW_DAEMON that leads nowhere is an error, not a reason to take another", () => {
  const environment = { PATH: dirname(COMMAND), CREONOW_DAEMON: join(tmpdir(), "no such daemon") };

  assert.throws(() => findExecutable(undefined, environment, undefined), { code: "NOT_FOUND" });
});

test("what was named in vain, and a package that lost its program, are said in the message, which is all that users see", () => {
  const nowhere = join(tmpdir(), "no such daemon");
  const packed = () => join(tmpdir(), "app.asar.unpacked");
  const none = () => undefined;

  assert.throws(() => findExecutable(nowhere, {}, undefined, none), { message: new RegExp(`\`executable\` names .*no such daemon`) });
  assert.throws(() => findExecutable(undefined, { CREONOW_DAEMON: nowhere }, undefined, none), { message: /CREONOW_DAEMON names .*no such daemon/ });
  assert.throws(() => findExecutable(undefined, { PATH: "" }, undefined, packed), { message: /is installed without .*app\.asar\.unpacked/ });
  assert.throws(() => findExecutable(undefined, { PATH: "" }, undefined, none), { message: /install @creonow\/daemon-/ });
});

test("a folder or a file that cannot be run is not a daemon", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "creonow app "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, NAME));

  assert.throws(() => findExecutable(join(folder, NAME)), { code: "NOT_FOUND", details: { looked: [resolve(folder, NAME)] } });
  assert.throws(() => findExecutable(undefined, { PATH: folder }, undefined), { code: "NOT_FOUND" });
});

test("a relative entry of PATH is not searched: the current folder may be anyone's", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "creonow app "));
  const before = process.cwd();
  t.after(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(join(folder, NAME), "");
  chmodSync(join(folder, NAME), 0o755);
  process.chdir(folder);

  assert.throws(() => findExecutable(undefined, { PATH: `.${delimiter}` }, undefined), { code: "NOT_FOUND" });
});
