// What a connection has set up in the daemon and a new one must set up again.
// Knows which channels begin and end such things; sends nothing.

const PAIRS = [
  { begin: "context:creonow:watch:start", end: "context:creonow:watch:stop", keys: ["projectId"] },
  {
    begin: "context:source:register",
    end: "context:source:unregister",
    keys: ["projectId", "layer", "name"],
  },
];
const BEGINNINGS = new Map(PAIRS.map((pair) => [pair.begin, pair]));
const ENDS = new Map(PAIRS.map((pair) => [pair.end, pair]));

export class Journal {
  #entries = new Map();

  /** Remember a call that succeeded, if it set something up; forget what it ended. */
  note(channel, text) {
    if (BEGINNINGS.has(channel)) {
      this.#entries.set(keyOf(BEGINNINGS.get(channel), text), { channel, text });
    } else if (ENDS.has(channel)) {
      this.#entries.delete(keyOf(ENDS.get(channel), text));
    }
  }

  /** Forget an entry that could not be set up again. */
  forget(channel, text) {
    this.#entries.delete(keyOf(BEGINNINGS.get(channel), text));
  }

  /** List what must be set up again, in the order in which it first was. */
  entries() {
    return [...this.#entries.values()];
  }
}

function keyOf(pair, text) {
  const payload = JSON.parse(text);
  return JSON.stringify([pair.begin, ...pair.keys.map((key) => payload[key] ?? null)]);
}
