// Signals between the parts of the page: who shows something need not know who changes it.

const listeners = new Map();

/** Call `listener` whenever the signal is given. */
export function onSignal(names, listener) {
  for (const name of [names].flat()) {
    if (!listeners.has(name)) listeners.set(name, new Set());
    listeners.get(name).add(listener);
  }
}

/** Give a signal to all who listen. */
export function signal(name, value) {
  for (const listener of listeners.get(name) ?? []) listener(value);
}
