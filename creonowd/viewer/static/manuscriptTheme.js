// How the manuscript looks. It lives in a shadow root, so only the page's colours reach it.

import { EditorView } from "@codemirror/view";

const SERIF = '"Iowan Old Style", "Palatino Linotype", Palatino, "Source Serif 4", Georgia, "Noto Serif", "Liberation Serif", "Songti SC", SimSun, "Noto Serif CJK SC", "DejaVu Serif", serif';

export const manuscriptTheme = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "transparent", fontSize: "var(--reading-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: SERIF, lineHeight: "1.75", overflow: "auto", overflowAnchor: "auto" },
  ".cm-content": { maxWidth: "38em", width: "100%", margin: "0 auto", padding: "1.2em 1.2em 40vh", caretColor: "var(--ink)", boxSizing: "border-box" },
  ".cm-line": { padding: "0" },
  ".cm-cursor": { borderLeft: "2px solid var(--accent)", marginLeft: "-1px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection)" },
  ".unseen-text": { color: "var(--dim)" },
  ".unseen-text.front_matter": { color: "var(--faint)", fontFamily: "ui-monospace, Menlo, monospace", fontSize: ".78em" },
  ".name": { textDecoration: "underline", textDecorationThickness: "1.5px", textUnderlineOffset: ".22em", textDecorationColor: "var(--rules)", cursor: "pointer" },
  ".name.left_out": { textDecorationStyle: "dotted", textDecorationThickness: "2px", textDecorationColor: "var(--bad)" },
  ".name.never": { textDecorationStyle: "dotted", textDecorationThickness: "2px", textDecorationColor: "var(--edge)" },
  ".answer-text": { whiteSpace: "pre-wrap", background: "var(--answer)", borderRadius: ".2em", boxDecorationBreak: "clone", padding: ".1em .15em" },
  ".answer-text.writing::after": { content: '"▍"', color: "var(--accent)" },
  ".answer-text mark": { background: "var(--bad-wash)", color: "var(--bad)", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: ".25em" },
  ".replaced": { textDecoration: "line-through", color: "var(--dim)" },
  ".cm-panels": { background: "var(--card)", color: "var(--ink)", borderColor: "var(--line)", fontFamily: "system-ui, sans-serif", fontSize: "14px" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-textfield": { background: "var(--paper)", color: "var(--ink)", border: "1px solid var(--edge)", fontSize: "14px" },
  ".cm-button": { background: "var(--card)", backgroundImage: "none", color: "var(--ink)", border: "1px solid var(--edge)", fontSize: "14px" },
  ".cm-searchMatch": { background: "var(--mark)" },
  ".cm-searchMatch-selected": { background: "var(--mark)", outline: "2px solid var(--accent)" },
});
