// The difference between two texts, line by line.

const LINES = 400;

/** Compare two texts line by line; return pairs of `" "`, `"-"` or `"+"` and a line. Long texts become two blocks. */
export function lineDifference(before, after) {
  const [old, now] = [before, after].map((text) => (text ? text.split("\n") : []));
  const same = (at, back) => (back ? old.at(-1 - at) === now.at(-1 - at) : old[at] === now[at]);
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && same(head, false)) head += 1;
  let tail = 0;
  while (tail < shorter - head && same(tail, true)) tail += 1;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  return [...edge(old.slice(0, head).slice(-2)), ...middle, ...edge(old.slice(old.length - tail).slice(0, 2))];
}

const edge = (lines) => lines.map((line) => [" ", line]);

function between(old, now) {
  const blocks = [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  if (!old.length || !now.length || old.length > LINES || now.length > LINES) return blocks;
  const common = commonLengths(old, now);
  const lines = [];
  let [from, to] = [0, 0];
  while (from < old.length || to < now.length) {
    if (from < old.length && to < now.length && old[from] === now[to]) {
      lines.push([" ", old[from]]);
      from += 1;
      to += 1;
    } else if (to >= now.length || (from < old.length && common[from + 1][to] >= common[from][to + 1])) {
      lines.push(["-", old[from]]);
      from += 1;
    } else {
      lines.push(["+", now[to]]);
      to += 1;
    }
  }
  return lines;
}

/** Make the table of the longest common subsequences of all tails. */
function commonLengths(old, now) {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let from = old.length - 1; from >= 0; from -= 1) {
    for (let to = now.length - 1; to >= 0; to -= 1) {
      rows[from][to] = old[from] === now[to] ? rows[from + 1][to + 1] + 1 : Math.max(rows[from + 1][to], rows[from][to + 1]);
    }
  }
  return rows;
}
