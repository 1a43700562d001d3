// Elements of the page; text from outside can never become HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Make an element; a string child is text, never markup. */
export function h(tag, attributes = {}, ...children) {
  return fillIn(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return fillIn(document.createElementNS(SVG, tag), attributes, children);
}

function fillIn(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...withoutGaps(children));
  return element;
}

/** Make a button that looks like a link unless `class` says otherwise. */
export const button = (label, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, label);

/** Put new children into an element, unless they look like those that are there: a button that is replaced while the
    author presses it would not hear of it. What had the focus keeps it. */
export function fill(element, ...children) {
  const made = document.createDocumentFragment();
  made.append(...withoutGaps(children));
  const before = [...element.childNodes];
  if (before.length === made.childNodes.length && before.every((one, at) => one.isEqualNode(made.childNodes[at]))) return;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  element.replaceChildren(made);
  if (focused && !document.contains(focused)) focusAgain(focused, element);
}

/** Give the focus to what has taken the place of an element: by its id, its key or its words. */
function focusAgain(lost, within) {
  const { id, dataset, tagName } = lost;
  const words = (one) => one.getAttribute("aria-label") ?? one.textContent;
  const again = id ? byId(id) : dataset.key ? byKey(dataset.key, within) : [...within.querySelectorAll(tagName)].find((one) => words(one) === words(lost));
  again?.focus({ preventScroll: true });
  if (again && lost.selectionStart !== null && lost.selectionStart !== undefined) again.setSelectionRange(lost.selectionStart, lost.selectionEnd);
}

/** Put new children into an element only if what they are made of has changed. */
export function fillChanged(element, madeOf, make) {
  const signature = JSON.stringify([madeOf, document.documentElement.lang]);
  if (element.signature === signature) return;
  element.signature = signature;
  fill(element, ...make());
}

/** Find an element by what the data calls it; an id made of data could hide one of the page's own. */
export const byKey = (key, within = document) => [...within.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);

/** Show a list, each item by its key: what did not change stays the very same element.

    So focus, scroll and selection stay where they are. `sign` is all that an item's element depends on. With `update` an
    element that is there is changed and not replaced: a key or a button may be down on it. */
export function patch(element, items, { key, sign, render, update }) {
  const before = new Map([...element.children].filter((one) => one.dataset.key).map((one) => [one.dataset.key, one]));
  const wanted = items.map((item) => {
    const [name, signature] = [key(item), sign(item)];
    const old = before.get(name);
    if (old && old.signature === signature) return old;
    const made = old && update ? update(old, item) : render(item);
    made.dataset.key = name;
    made.signature = signature;
    return made;
  });
  arrange(element, wanted);
}

/** Make `wanted` the children of an element, moving only those that are not in place. */
function arrange(element, wanted) {
  const kept = new Set(wanted);
  for (const child of [...element.children]) if (!kept.has(child)) replaceFocused(child, wanted);
  wanted.forEach((child, at) => {
    if (element.children[at] !== child) element.insertBefore(child, element.children[at] ?? null);
  });
}

/** Remove an element; if the focus was in it, give it to the one that takes its place. */
function replaceFocused(child, wanted) {
  const inner = child.contains(document.activeElement) ? document.activeElement : null;
  const next = wanted.find((one) => one.dataset.key && one.dataset.key === child.dataset.key);
  if (!next) return child.remove();
  child.replaceWith(next);
  const again = inner === child ? next : inner && (byKey(inner.dataset.key ?? "", next) ?? next.querySelector("summary, button"));
  again?.focus({ preventScroll: true });
  return undefined;
}

/** Split a text into parts, with every match in a `mark` element. */
export function withMarks(text, query) {
  if (!query) return [text];
  const literal = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.split(new RegExp(`(${literal})`, "giu")).map((part, at) => (at % 2 ? h("mark", {}, part) : part));
}

/** Make a table; `numbers` lists the columns to align right. */
export function table(heads, rows, numbers = []) {
  const look = (at) => (numbers.includes(at) ? "number" : undefined);
  return h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head, at) => h("th", { scope: "col", class: look(at) }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((content, at) => h("td", { class: look(at) }, ...[content].flat()))))));
}

/** Make a text of the daemon with its secrets as black bars. */
export function withBars(text) {
  return text.split(/(\*\*\*REDACTED\*\*\*)/u).map((part, at) => (at % 2 ? h("span", { class: "secret" }, part) : part));
}

/** Return the one change that makes a text of another, or null if they are the same. */
export function changeBetween(before, after) {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { from: head, to: before.length - tail, text: after.slice(head, after.length - tail) };
}

/** Copy a text, and say on the button whether that was allowed. */
export function copyButton(label, text, { done, failed, ...attributes }) {
  const made = button(label, async () => {
    const copied = await navigator.clipboard.writeText(text()).then(() => true, () => false);
    made.textContent = copied ? done : failed;
    setTimeout(() => { made.textContent = label; }, 2000);
  }, attributes);
  return made;
}

function withoutGaps(children) {
  return children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}
