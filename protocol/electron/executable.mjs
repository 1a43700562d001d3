// Where the daemon is installed and where it keeps its data. Starts nothing.
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { DaemonError } from "./errors.mjs";

const APP = "CreoNow";
const WINDOWS = process.platform === "win32";
const NAME = WINDOWS ? "creonowd.exe" : "creonowd";

/**
 * Find the daemon: as told, else `CREONOW_DAEMON`, else beside a packaged app's resources, else on PATH.
 *
 * A name without a folder is looked up on PATH. DaemonError NOT_FOUND lists where it was looked for.
 */
export function findExecutable(told, environment = process.env, resources = process.resourcesPath) {
  const named = told ?? environment.CREONOW_DAEMON;
  const places = named === undefined ? installed(environment, resources) : spelled(named, environment);
  const found = places.find(isExecutable);
  if (found !== undefined) return found;
  const message =
    "creonowd was not found; install it (`pip install creonowd`), put it into the app's resources " +
    "as creonowd/, or name it in `executable` or CREONOW_DAEMON.";
  throw new DaemonError("NOT_FOUND", message, { looked: places });
}

/** Tell where user data lives if nobody says so: the same place that the daemon would choose. */
export function userDataFolder(environment = process.env) {
  if (environment.CREONOW_USER_DATA_DIR) return environment.CREONOW_USER_DATA_DIR;
  const home = homedir();
  if (WINDOWS) return join(environment.LOCALAPPDATA ?? join(home, "AppData", "Local"), APP);
  if (process.platform === "darwin") return join(home, "Library", "Application Support", APP);
  const data = environment.XDG_DATA_HOME?.trim();
  return join(data || join(home, ".local", "share"), APP);
}

function installed(environment, resources) {
  const packaged = resources ? [join(resources, "creonowd", NAME), join(resources, NAME)] : [];
  return [...packaged, ...onPath(NAME, environment)];
}

function spelled(named, environment) {
  if (isAbsolute(named) || /[\\/]/.test(named)) return [named];
  return onPath(WINDOWS && !/\.exe$/i.test(named) ? `${named}.exe` : named, environment);
}

function onPath(name, environment) {
  const path = environment.PATH ?? environment.Path ?? "";
  return path.split(delimiter).filter(Boolean).map((folder) => join(folder, name));
}

function isExecutable(path) {
  try {
    accessSync(path, WINDOWS ? constants.F_OK : constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
