// What a connection has set up in the daemon and a new one must set up again.
// Knows which channels begin and end such things; sends nothing.

const PAIRS = [
  { begin: "context:creonow:watch:start", end: "context:creonow:watch:stop", keys: ["projectId"] },
  {
    begin: "context:source:register",
    end: "context:source:unregister",
    keys: ["name", "layer", "projectId"],
  },
];
const BEGINNINGS = new Map(PAIRS.map((pair) => [pair.begin, pair]));
const ENDS = new Map(PAIRS.map((pair) => [pair.end, pair]));

export class Journal {
  #entries = new Map();

  /** Remember a call that succeeded, if it set something up; forget what it ended. */
  note(channel, text) {
    if (BEGINNINGS.has(channel)) this.#begin(BEGINNINGS.get(channel), channel, text);
    if (ENDS.has(channel)) this.#end(ENDS.get(channel), JSON.parse(text));
  }

  /** Forget an entry that could not be set up again. */
  forget(channel, text) {
    this.#end(BEGINNINGS.get(channel), JSON.parse(text));
  }

  /** List what must be set up again, in the order in which it first was. */
  entries() {
    return [...this.#entries.values()];
  }

  #begin(pair, channel, text) {
    const names = namesOf(pair, JSON.parse(text));
    this.#entries.set(JSON.stringify([channel, ...names]), { channel, text, names });
  }

  /** A key that an end does not name means every one of them. */
  #end(pair, payload) {
    const wanted = namesOf(pair, payload);
    for (const [key, { channel, names }] of [...this.#entries]) {
      const meant = wanted.every((name, i) => name === null || name === names[i]);
      if (channel === pair.begin && meant) this.#entries.delete(key);
    }
  }
}

function namesOf(pair, payload) {
  return pair.keys.map((key) => payload[key]?.trim() ?? null);
}
