// The language of the page: its fixed texts, numbers, plural forms and lists as that language writes them.

import { REASONS, STRINGS } from "./strings.js";

let codes = {};
let language = localStorage.getItem("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");

export const locale = () => (language === "zh" ? "zh-CN" : "en");
export const isChinese = () => language === "zh";

const inLanguage = (pair) => pair?.[language === "zh" ? 0 : 1];
const formats = new Map();

function format(kind, make) {
  const key = `${kind}:${language}`;
  if (!formats.has(key)) formats.set(key, make(isChinese() ? "zh-CN" : "en-GB"));
  return formats.get(key);
}

/** Return what stands between two sentences. */
export const sentenceGap = () => (isChinese() ? "" : " ");

/** Write a number with the separators of the language. */
export const number = (value) => format("number", (name) => new Intl.NumberFormat(name)).format(value);

export const percent = (value) => format("percent", (name) => new Intl.NumberFormat(name, { style: "percent" })).format(value);

/** Join names as the language does: "a, b and c". Chinese sets a number off from the word before it. */
export const listing = (items) => format("list", (name) => new Intl.ListFormat(name, { type: "conjunction" })).format(items).replace(/和(?=[\d\u0000])/u, isChinese() ? "和 " : "和");

export const time = (date) => format("time", (name) => new Intl.DateTimeFormat(name, { hour: "2-digit", minute: "2-digit", second: "2-digit" })).format(date);

/** Return a text of the page; `{0}` and so on are replaced by the values, numbers with separators.

    A text with plural forms takes the one for the first number. */
export function string(name, ...values) {
  return form(name, values).replace(/\{(\d)\}/g, (_, at) => valueText(values[at]));
}

/** Return the parts of a text with elements in the places of its values. */
export function parts(name, ...values) {
  return form(name, values).split(/\{(\d)\}/).map((part, at) => {
    if (at % 2 === 0) return part;
    return typeof values[part] === "number" ? number(values[part]) : values[part];
  });
}

function form(name, values) {
  const text = inLanguage(STRINGS[name]) ?? name;
  if (typeof text === "string") return text;
  const count = values.find((value) => typeof value === "number") ?? 0;
  const rule = format("plural", (spoken) => new Intl.PluralRules(spoken)).select(count);
  return text[rule] ?? text.other;
}

const valueText = (value) => (typeof value === "number" ? number(value) : String(value ?? ""));

/** Return why a piece is in the prompt or not. */
export function reason(rule, action) {
  return inLanguage(REASONS[rule]?.[action]) ?? string(action);
}

/** Return what a code means, without the code. */
export const meaning = (code) => inLanguage(codes[code]) ?? "";

/** Return what went wrong as a sentence; the code stands under "for developers". */
export function errorText({ code, message = "" }) {
  const text = meaning(code);
  const detail = message.replace(new RegExp(`^${code}:? ?`), "");
  if (!text) return detail || code;
  if (!detail || detail === text || codes[code]?.includes(detail)) return text;
  return detail.startsWith(text) ? detail : `${text} ${detail}`;
}

/** Fetch the texts of the daemon's codes. */
export async function loadCodes() {
  codes = await (await fetch("/codes.json")).json();
}

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", language);
}

/** Write every fixed text of the page in the current language. */
export function translatePage() {
  document.documentElement.lang = locale();
  const every = (attribute, write) => document.querySelectorAll(`[data-${attribute}]`).forEach((one) => write(one, string(one.dataset[attribute])));
  every("string", (one, text) => { one.textContent = text; });
  every("label", (one, text) => one.setAttribute("aria-label", text));
  every("placeholder", (one, text) => { one.placeholder = text; });
  document.getElementById("language").textContent = language === "zh" ? "English" : "中文";
  document.getElementById("language").lang = language === "zh" ? "en" : "zh-CN";
  document.title = `CreoNow · ${string("title")}`;
}
