// Where the daemon is installed and where it keeps its data.
import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { DaemonError } from "./errors.mjs";

const APP = "CreoNow";
const WINDOWS = process.platform === "win32";
const NAME = WINDOWS ? "creonowd.exe" : "creonowd";
const PLATFORM_PACKAGE = `@creonow/daemon-${process.platform}-${process.arch}`;

/**
 * Find the daemon: `option`, else in a packaged app's resources, else in the package of this platform
 * (such as `@creonow/daemon-linux-x64`), else `CREONOW_DAEMON`, else on PATH.
 *
 * Returns its `path` and its `origin`, which of those it was. A name without a folder is looked up on
 * PATH. The DaemonError NOT_FOUND says what was named and is no program, and lists the places searched.
 */
export function findExecutable(option, environment = process.env, resources = process.resourcesPath, lookUp = findPackage) {
  const places = [...candidates(option, environment, resources, lookUp)];
  const found = places.find(({ path }) => isExecutable(path));
  if (found !== undefined) return found;
  throw new DaemonError("NOT_FOUND", missing(option, environment, places), { looked: places.map(({ path }) => path) });
}

/** Say what is wrong with what was named, or what was expected where. */
function missing(option, environment, places) {
  const named = option || environment.CREONOW_DAEMON;
  const expected = places.filter(({ origin }) => origin === "package").map(({ path }) => path);
  const wrong = [
    ...(named ? [`${option ? "\`executable\`" : "CREONOW_DAEMON"} names ${named}, which is no program that can be run`] : []),
    ...expected.map((path) => `${PLATFORM_PACKAGE} is installed without ${path}; an app's archive must leave it unpacked`),
  ];
  if (wrong.length) return `creonowd was not found: ${wrong.join("; ")}.`;
  return (
    "creonowd was not found; put it into the app's resources as creonowd/, install " +
    `${PLATFORM_PACKAGE} or \`pip install creonowd\`, or name it in \`executable\` or CREONOW_DAEMON.`
  );
}

/** Return the user-data folder: `option`, else `CREONOW_USER_DATA_DIR`, else the daemon's own default. */
export function userDataFolder(option, environment = process.env) {
  const named = option ?? (environment.CREONOW_USER_DATA_DIR || undefined);
  return resolve(named === undefined ? join(platformFolder(environment), APP) : expandHome(named));
}

function platformFolder(environment) {
  if (WINDOWS) return environment.LOCALAPPDATA ?? join(homedir(), "AppData", "Local");
  const data = environment.XDG_DATA_HOME;
  if (data && isAbsolute(data)) return data;
  const usual = process.platform === "darwin" ? ["Library", "Application Support"] : [".local", "share"];
  return join(homedir(), ...usual);
}

function expandHome(path) {
  return path.replace(/^~(?=$|[\\/])/, homedir);
}

function* candidates(option, environment, resources, lookUp) {
  const of = (origin, paths) => paths.map((path) => ({ path, origin }));
  if (option) {
    yield* of("option", namedPlaces(option, environment));
    return;
  }
  if (resources) yield* of("resources", [join(resources, "creonowd", NAME), join(resources, NAME)]);
  const folder = lookUp(PLATFORM_PACKAGE);
  if (folder) yield* of("package", [join(folder, "creonowd", NAME)]);
  const named = environment.CREONOW_DAEMON;
  if (named) yield* of("environment", namedPlaces(named, environment));
  else yield* of("path", onPath(NAME, environment));
}

/** Return the folder of an installed package; from an archive, the folder that was left unpacked beside it. */
function findPackage(name) {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    return folder.replace(/\.asar(?=[\\/])/, ".asar.unpacked");
  } catch {
    return undefined;
  }
}

function namedPlaces(named, environment) {
  const program = WINDOWS && !/\.exe$/i.test(named) ? `${named}.exe` : named;
  return /[\\/]/.test(named) ? [resolve(program)] : onPath(program, environment);
}

function onPath(name, environment) {
  const path = environment.PATH ?? environment.Path ?? "";
  // A relative entry would find what anyone put into the current folder.
  return path.split(delimiter).filter(isAbsolute).map((folder) => join(folder, name));
}

function isExecutable(path) {
  try {
    accessSync(path, WINDOWS ? constants.F_OK : constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
