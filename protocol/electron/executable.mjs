// Where the daemon is installed and where it keeps its data.
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { DaemonError } from "./errors.mjs";

const APP = "CreoNow";
const WINDOWS = process.platform === "win32";
const NAME = WINDOWS ? "creonowd.exe" : "creonowd";

/**
 * Find the daemon: `option`, else `CREONOW_DAEMON`, else in a packaged app's resources, else on PATH.
 *
 * A name without a folder is looked up on PATH. The DaemonError NOT_FOUND lists the places searched.
 */
export function findExecutable(option, environment = process.env, resources = process.resourcesPath) {
  const named = option || environment.CREONOW_DAEMON || undefined;
  const places = named === undefined ? usualPlaces(environment, resources) : namedPlaces(named, environment);
  const found = places.find(isExecutable);
  if (found !== undefined) return found;
  const message =
    "creonowd was not found; install it (`pip install creonowd`), put it into the app's resources " +
    "as creonowd/, or name it in `executable` or CREONOW_DAEMON.";
  throw new DaemonError("NOT_FOUND", message, { looked: places });
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

function usualPlaces(environment, resources) {
  const packaged = resources ? [join(resources, "creonowd", NAME), join(resources, NAME)] : [];
  return [...packaged, ...onPath(NAME, environment)];
}

function namedPlaces(named, environment) {
  if (isAbsolute(named) || /[\\/]/.test(named)) return [resolve(named)];
  return onPath(WINDOWS && !/\.exe$/i.test(named) ? `${named}.exe` : named, environment);
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
