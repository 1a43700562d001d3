// Positions in a file with carriage returns, and in the editor, which counts each line break as one.

/** Return the editor's positions of the line breaks that have a carriage return in the file. */
export function returnsOf(text) {
  const found = [];
  let at = text.indexOf("\r\n");
  while (at >= 0) {
    found.push(at - found.length);
    at = text.indexOf("\r\n", at + 2);
  }
  return found;
}

/** Return how many of them lie before a position of the editor. */
export function crossings(returns, at) {
  return count(returns, (position) => position < at);
}

/** Return a position of the file as one of the editor. */
export function withoutReturns(returns, at) {
  return at - count(returns, (position, before) => position + before < at);
}

/** Count the leading items that pass; the first that does not ends it. */
function count(returns, passes) {
  let [low, high] = [0, returns.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(returns[middle], middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
