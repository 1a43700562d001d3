// The little that is needed to write a page: elements, and nothing that could be HTML from outside.

export const byId = (id) => document.getElementById(id);

/** Make an element; a string child is text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Put new children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** Show text with every place that matches marked. */
export function marked(text, sought) {
  if (!sought) return [text];
  const parts = [];
  const low = text.toLowerCase();
  const needle = sought.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(needle); at >= 0 && parts.length < 2000; at = low.indexOf(needle, from)) {
    parts.push(text.slice(from, at), h("mark", {}, text.slice(at, at + needle.length)));
    from = at + needle.length;
  }
  return [...parts, text.slice(from)];
}

/** Show the first rows, and a button for the rest. */
export function capped(rows, limit, label, render) {
  const box = h("div");
  const shown = rows.slice(0, limit).map(render);
  box.append(...shown);
  if (rows.length > limit) {
    const button = h("button", { type: "button", class: "quiet", onclick: () => {
      button.remove();
      box.append(...rows.slice(limit).map(render));
    } }, `${label} (${rows.length})`);
    box.append(button);
  }
  return box;
}

export function table(heads, rows, numbers = []) {
  const cells = (row) => row.map((cell, at) => h("td", { class: numbers.includes(at) ? "number" : undefined }, cell));
  return h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...cells(row)))));
}
