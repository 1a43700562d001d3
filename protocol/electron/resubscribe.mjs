// Subscriptions that a new connection must make again: watches of files and registered sources.

const PAIRS = [
  { begin: "context:creonow:watch:start", end: "context:creonow:watch:stop", keys: ["projectId"] },
  {
    begin: "context:source:register",
    end: "context:source:unregister",
    keys: ["name", "layer", "projectId"],
  },
];
const BY_BEGIN = new Map(PAIRS.map((pair) => [pair.begin, pair]));
const BY_END = new Map(PAIRS.map((pair) => [pair.end, pair]));

export class Subscriptions {
  #entries = new Map();

  /** Record a call that succeeded: keep what it began, remove what it ended. */
  record(channel, text) {
    if (BY_BEGIN.has(channel)) this.#add(BY_BEGIN.get(channel), text);
    if (BY_END.has(channel)) this.#remove(BY_END.get(channel), JSON.parse(text));
  }

  /** Remove a subscription that could not be made again. */
  remove(channel, text) {
    this.#remove(BY_BEGIN.get(channel), JSON.parse(text));
  }

  /** List the calls to repeat, in the order in which they were first made. */
  entries() {
    return [...this.#entries.values()];
  }

  #add(pair, text) {
    const values = keyValues(pair, JSON.parse(text));
    this.#entries.set(JSON.stringify([pair.begin, ...values]), { channel: pair.begin, text, values });
  }

  /** A key that the payload leaves out matches every value. */
  #remove(pair, payload) {
    const wanted = keyValues(pair, payload);
    for (const [key, { channel, values }] of [...this.#entries]) {
      const matches = wanted.every((value, i) => value === null || value === values[i]);
      if (channel === pair.begin && matches) this.#entries.delete(key);
    }
  }
}

function keyValues(pair, payload) {
  return pair.keys.map((key) => payload[key]?.trim() ?? null);
}
