// Elements of the page; text from outside can never become HTML.

export const byId = (id) => document.getElementById(id);

/** Find an element by what the data calls it; an id made of data could hide one of the page's own. */
export const byKey = (key) => [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);

/** Make an element; a string child is text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element[name] = true;
    else element.setAttribute(name, value);
  }
  element.append(...present(children));
  return element;
}

/** Put new children into an element; what had the focus keeps it, if it has an id or a key. */
export function fill(element, ...children) {
  const { id, dataset } = element.contains(document.activeElement) ? document.activeElement : { dataset: {} };
  element.replaceChildren(...present(children));
  const focused = id ? byId(id) : dataset.key && byKey(dataset.key);
  if (focused) focused.focus({ preventScroll: true });
}

/** Split a text into parts, with every match in a `mark` element. */
export function marked(text, query) {
  if (!query) return [text];
  const literal = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.split(new RegExp(`(${literal})`, "giu")).map((part, at) => (at % 2 ? h("mark", {}, part) : part));
}

/** Show the first rows and, if there are more, a button that calls `showAll`. */
export function capped(rows, limit, label, render, showAll) {
  const shown = rows.slice(0, limit).map(render);
  if (rows.length <= limit) return shown;
  return [...shown, h("button", { type: "button", class: "quiet", onclick: showAll }, `${label} (${rows.length})`)];
}

/** Make a table; `numbers` lists the columns to align right. */
export function table(heads, rows, numbers = []) {
  const cell = (content, at) => h("td", { class: numbers.includes(at) ? "number" : undefined }, ...[content].flat());
  return h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head, at) => h("th", { scope: "col", class: numbers.includes(at) ? "number" : undefined }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map(cell)))));
}

function present(children) {
  return children.filter((child) => child !== null && child !== undefined);
}
