// Every word on the page, in two languages.

const WORDS = {
  title: ["上下文查看器", "Context viewer"],
  project: ["项目", "Project"],
  export: ["导出 JSON", "Export JSON"],
  theme: ["明暗", "Theme"],
  desk: ["写作台", "Desk"],
  document: ["文档", "Document"],
  cursor: ["光标位置", "Cursor"],
  skill: ["技能", "Skill"],
  input: ["额外指令", "Instruction"],
  run: ["运行技能", "Run skill"],
  cancel: ["停止", "Stop"],
  toggle: ["查看上下文", "Show context"],
  panel: ["模型看到的上下文", "What the model sees"],
  whatIf: ["假设……", "What if …"],
  whatIfTold: ["以下改动只用于重新组装，不写入任何文件。", "These only assemble anew; nothing is written anywhere."],
  whatIfBudget: ["总预算（tokens）", "Total budget (tokens)"],
  whatIfText: ["代替文档的草稿", "A draft instead of the document"],
  whatIfReset: ["恢复实际情况", "Back to what is"],
  whatIfShown: ["假设的结果", "a what-if"],
  search: ["搜索片段", "Search fragments"],
  jump: ["跳转到片段", "Jump to a fragment"],
  trim: ["裁剪证据", "Trim evidence"],
  redaction: ["脱敏证据", "Redaction evidence"],
  difference: ["与上次组装的差异", "Difference to the previous assembly"],
  constraints: ["创作约束", "Constraints"],
  budget: ["预算", "Budget"],
  rules: ["规则", "Rules"],
  settings: ["设定", "Settings"],
  retrieved: ["召回", "Retrieved"],
  immediate: ["即时", "Immediate"],
  fixed: ["固定模板", "Fixed"],
  total: ["合计", "Total"],
  left: ["剩余", "left"],
  of: ["／", " of "],
  share: ["份额", "share"],
  minimum: ["最低", "minimum"],
  truncated: ["有裁剪", "truncated"],
  empty: ["（空）", "(empty)"],
  kept: ["保留", "kept"],
  trimmed: ["裁剪", "trimmed"],
  dropped: ["舍弃", "dropped"],
  score: ["得分", "score"],
  confidence: ["置信度", "confidence"],
  priority: ["优先级", "priority"],
  fitsWith: ["再多 {0} tokens 就放得下", "would fit with +{0} tokens"],
  copy: ["复制", "Copy"],
  copied: ["已复制", "Copied"],
  showAll: ["全部显示", "Show all"],
  hashPrefix: ["稳定前缀", "Stable prefix"],
  hashPrompt: ["完整提示", "Whole prompt"],
  cacheHit: ["缓存命中", "cache hit"],
  cacheMiss: ["缓存未命中", "cache miss"],
  cacheFirst: ["首次组装", "first assembly"],
  prefixChange: ["{0}：{1}", "{0}: {1}"],
  added: ["新增", "added"],
  removed: ["移除", "removed"],
  changed: ["改动", "changed"],
  reordered: ["换序", "reordered"],
  candidates: ["候选 {0}：保留 {1}，裁剪 {2}，舍弃 {3}", "{0} candidates: {1} kept, {2} trimmed, {3} dropped"],
  tokenizer: ["分词器", "Tokenizer"],
  inexact: ["近似", "approximate"],
  layer: ["层", "Layer"],
  source: ["来源", "Source"],
  action: ["处理", "Action"],
  why: ["原因", "Why"],
  chars: ["字符", "Characters"],
  tokens: ["Tokens", "Tokens"],
  pattern: ["规则", "Pattern"],
  count: ["次数", "Count"],
  nothingRedacted: ["没有需要脱敏的内容。", "Nothing had to be redacted."],
  nothingTrimmed: ["没有候选内容。", "There were no candidates."],
  noDifference: ["没有差异。", "No difference."],
  noPrevious: ["还没有上一次组装。", "There is no previous assembly yet."],
  add: ["添加", "Add"],
  save: ["保存", "Save"],
  remove: ["删除", "Delete"],
  newConstraint: ["新的约束", "New constraint"],
  window: ["上下文窗口", "Context window"],
  system: ["系统提示", "System prompt"],
  reserve: ["输出预留", "Output reserve"],
  ratio: ["比例", "ratio"],
  conflict: ["别处刚刚修改过，已重新载入，请再试一次。", "Someone else changed this first; it was loaded anew, please try again."],
  saved: ["已保存。", "Saved."],
  connecting: ["连接中", "connecting"],
  connected: ["已连接", "connected"],
  disconnected: ["已断开", "disconnected"],
  loading: ["组装中……", "Assembling …"],
  noProject: ["还没有项目。用 creonowd view --project 文件夹 打开一个。", "There is no project yet. Open one with: creonowd view --project FOLDER"],
  noDocument: ["选择一个文档，看看模型会看到什么。", "Choose a document to see what the model would see."],
  tokenGone: ["这个地址只能用一次。请重新运行 creonowd view。", "This address works once. Run creonowd view again."],
  lost: ["与守护进程的连接断开了，正在重连。若守护进程已重启，请重新运行 creonowd view。", "The connection to the daemon is lost; trying again. If the daemon was restarted, run creonowd view again."],
  running: ["运行中……", "Running …"],
  failed: ["失败：{0}", "Failed: {0}"],
  violations: ["违反约束 {0} 处", "{0} constraint violations"],
  unchecked: ["未检查 {0} 条", "{0} unchecked"],
  passed: ["约束检查通过", "constraints passed"],
};

let language = localStorage.getItem("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");

export const currentLanguage = () => language;

export function word(name, ...values) {
  const text = WORDS[name]?.[language === "zh" ? 0 : 1] ?? name;
  return values.reduce((told, value, at) => told.replace(`{${at}}`, value), text);
}

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", language);
}

/** Write every fixed word of the page. */
export function spell() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", word(element.dataset.label));
  document.getElementById("language").textContent = language === "zh" ? "English" : "中文";
  document.title = `CreoNow · ${word("title")}`;
}
