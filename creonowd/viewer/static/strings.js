// Every fixed text of the page, in Chinese and English. The daemon serves the texts of its codes.

const STRINGS = {
  title: ["上下文查看器", "Context viewer"],
  project: ["项目", "Project"],
  export: ["导出 JSON", "Export JSON"],
  exportHint: ["导出一份不含正文的报告，可附在问题报告里", "Export one report without any text of yours, fit for a bug report"],
  exportTexts: ["导出（含正文）", "Export with texts"],
  exportTextsHint: ["同一份报告，并附上模型看到的正文（已隐去密钥）", "The same report with the texts that the model sees, secrets taken out"],
  toDark: ["深色", "Dark"],
  toLight: ["浅色", "Light"],
  editor: ["写作台", "Desk"],
  document: ["文档", "Document"],
  cursor: ["光标位置", "Cursor"],
  selection: ["选区起点（可空）", "Selection from (optional)"],
  skill: ["技能", "Skill"],
  general: ["通用（全部来源）", "General (every source)"],
  invalidSkill: ["{0}（无效）", "{0} (not valid)"],
  input: ["额外指令", "Instruction"],
  run: ["运行技能", "Run skill"],
  cancel: ["停止", "Stop"],
  showInspector: ["查看上下文", "Show context"],
  hideInspector: ["收起上下文", "Hide context"],
  hint: ["打开「查看上下文」，看看每一次 AI 调用里模型究竟看到了什么、为什么。", "Show the context to see what the model gets to see in an AI call, and why."],
  inspector: ["模型看到的上下文", "What the model sees"],
  whatIf: ["假设……", "What if …"],
  whatIfHint: ["以下改动只用于重新组装，不写入任何文件。", "These only assemble anew; nothing is written anywhere."],
  whatIfBudget: ["总预算（tokens）", "Total budget (tokens)"],
  whatIfText: ["代替文档的草稿（光标在你停笔处）", "A draft instead of the document (the cursor is where you stop)"],
  whatIfReset: ["恢复实际情况", "Back to what is"],
  whatIfShown: ["这是假设的结果，没有写入任何文件。", "This is a what-if; nothing was written."],
  search: ["搜索片段", "Search fragments"],
  found: ["{0} 个片段", "{0} fragments"],
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
  used: ["已用", "used"],
  share: ["份额", "share"],
  minimum: ["最低", "minimum"],
  leftOf: ["剩余 {0}", "{0} left"],
  overShare: ["超出份额 {0}", "{0} over its share"],
  truncated: ["有裁剪", "truncated"],
  empty: ["（空）", "(empty)"],
  noMatch: ["没有符合搜索的片段。", "No fragment matches."],
  kept: ["保留", "kept"],
  trimmed: ["裁剪", "trimmed"],
  dropped: ["舍弃", "dropped"],
  score: ["得分", "score"],
  confidence: ["置信度", "confidence"],
  priority: ["优先级", "priority"],
  fitsWith: ["再多 {0} tokens 就放得下", "would fit with +{0} tokens"],
  copy: ["复制", "Copy"],
  copied: ["已复制", "Copied"],
  copyFailed: ["浏览器不允许复制", "The browser forbids it"],
  showAll: ["全部显示", "Show all"],
  hashPrefix: ["稳定前缀", "Stable prefix"],
  hashPrompt: ["完整提示", "Whole prompt"],
  prefixUnchanged: ["前缀未变", "prefix unchanged"],
  prefixChanged: ["前缀已变", "prefix changed"],
  prefixFirst: ["首次组装", "first assembly"],
  prefixNone: ["假设，不比对", "what-if, not compared"],
  prefixShort: ["过短，不会被缓存（{0} / {1}）", "too short to be cached ({0} of {1})"],
  readFromCache: ["读自缓存：{1} 个 token 中的 {0} 个", "read from cache: {0} of {1} tokens"],
  missBecause: ["原因：{0} ", "Because this was {0}: "],
  cacheable: ["{0} tokens，达到服务商的缓存下限 {1}", "{0} tokens; providers cache from {1} on"],
  usage: ["用量与费用（近 30 天）", "Usage and cost, last 30 days"],
  noUsage: ["没有模型调用的记录。", "No call to a model is recorded."],
  usageModel: ["模型", "Model"],
  usageCalls: ["调用", "Calls"],
  usageInput: ["输入", "Input"],
  usageRead: ["读自缓存", "From cache"],
  usageWritten: ["写入缓存", "To cache"],
  usageOutput: ["输出", "Output"],
  usageCost: ["费用", "Cost"],
  usageSaved: ["缓存节省", "Saved by cache"],
  usageLost: ["{0} 的改动：{1} 个 token（{2} 次调用）未能读自缓存", "Changes of {0}: {1} tokens in {2} calls could not come from the cache"],
  usagePrices: ["金额以 {0} 计，价格截至 {1}；{2} 次调用没有价格，{3} 次没有报告 token 数。", "Money is {0} by the prices of {1}; {2} calls have no price, {3} reported no counts."],
  added: ["新增", "added"],
  removed: ["移除", "removed"],
  changed: ["改动", "changed"],
  reordered: ["换序", "reordered"],
  candidates: ["候选 {0}：保留 {1}，裁剪 {2}，舍弃 {3}", "{0} candidates: {1} kept, {2} trimmed, {3} dropped"],
  target: ["技能目标 {0} tokens", "the skill aims at {0} tokens"],
  tokenizer: ["分词器", "Tokenizer"],
  inexact: ["近似", "approximate"],
  atMost: ["至多 {0}", "at most {0}"],
  bound: ["上限；按 o200k_base 计为 {0}", "an upper bound; {0} by o200k_base"],
  corrected: ["预算已按实际用量除以 {0}（{1} 次运行）", "budget divided by {0}, learned from {1} runs"],
  source: ["来源", "Source"],
  reason: ["处理与原因", "What became of it, and why"],
  chars: ["字符", "Characters"],
  tokens: ["Tokens", "Tokens"],
  pattern: ["模式", "Pattern"],
  count: ["次数", "Count"],
  nothingRedacted: ["没有需要脱敏的内容。", "Nothing had to be redacted."],
  nothingTrimmed: ["没有候选内容。", "There were no candidates."],
  noDifference: ["没有差异。", "No difference."],
  noPrevious: ["还没有上一次组装。", "There is no previous assembly yet."],
  comparedWith: ["上一次：{0} · {1} · {2}", "Previous: {0} · {1} · {2}"],
  add: ["添加", "Add"],
  save: ["保存", "Save"],
  remove: ["删除", "Delete"],
  constraint: ["约束 {0}", "Constraint {0}"],
  newConstraint: ["新的约束", "New constraint"],
  noConstraints: ["还没有约束。", "There are no constraints yet."],
  fromGraph: ["来自知识图谱，不能在此修改", "from the knowledge graph; cannot be changed here"],
  window: ["上下文窗口", "Context window"],
  system: ["系统提示", "System prompt"],
  reserve: ["输出预留", "Output reserve"],
  ratio: ["比例", "ratio"],
  budgetSum: ["总预算 {0} tokens · 比例合计 {1} %", "Total budget {0} tokens · ratios add up to {1} %"],
  conflict: ["别处刚刚修改过。你填的内容还在；核对后再保存一次即可。", "Someone else changed this first. What you typed is still here; look again, then save once more."],
  nowIs: ["别处现在是：{0}", "Elsewhere it is now: {0}"],
  takeTheirs: ["用别处的", "Take that"],
  gone: ["别处已删除", "deleted elsewhere"],
  saved: ["已保存。", "Saved."],
  connecting: ["连接中", "connecting"],
  connected: ["已连接", "connected"],
  disconnected: ["已断开", "disconnected"],
  refused: ["未获准", "refused"],
  loading: ["组装中……", "Assembling …"],
  noProject: ["还没有项目。用 creonowd view --project 文件夹 打开一个。", "There is no project yet. Open one with: creonowd view --project FOLDER"],
  noDocument: ["选择一个文档，看看模型会看到什么。", "Choose a document to see what the model would see."],
  tokenGone: ["这个地址只能用一次，或已失效。请重新运行 creonowd view。", "This address works once, or has run out. Run creonowd view again."],
  lost: ["与守护进程的连接断开了，正在重连。若一直连不上，请重新运行 creonowd view。", "The connection to the daemon is lost; trying again. If it does not come back, run creonowd view again."],
  stale: ["下面是 {0} 的结果，可能已经过时。", "What is shown below is from {0} and may be out of date."],
  unwatched: ["无法监视文件，改动不会自动显示。", "Files cannot be watched; changes will not show by themselves."],
  running: ["运行中……", "Running …"],
  stopped: ["已停止。", "Stopped."],
  violations: ["违反约束 {0} 处", "{0} constraint violations"],
  unchecked: ["未检查 {0} 条", "{0} unchecked"],
  uncheckedWhy: ["哪些约束没有检查，为什么", "Which were not checked, and why"],
  passed: ["约束检查通过", "constraints passed"],
  fake: ["尚未配置 AI：内置的假服务把收到的提示原样返回。运行 creonowd ai add 后即由真正的模型作答。", "No AI is configured: the built-in fake gives back the prompt it was sent. Run `creonowd ai add` to get a model's answer."],
};

const REASONS = {
  rules_line: { kept: ["在规则线以内，或不得让出", "within the Rules line, or not allowed to leave"], dropped: ["规则层超线，按相关度与优先级让出", "Rules were over their line; the least relevant leave"] },
  not_mentioned: { kept: ["规则层超线，但文中提到", "Rules were over their line, but the document mentions it"], dropped: ["规则层超线，且文中没有提到", "Rules were over their line, and the document does not mention it"] },
  constraint_limit: { dropped: ["超过单次约束条数上限", "past the limit of constraints"] },
  settings_share: { kept: ["设定的空间放得下", "there is room for it in Settings"], trimmed: ["设定的空间不够，截到段落", "too little room for Settings; cut at a paragraph"], dropped: ["设定的空间不够，置信度低的先让出", "too little room for Settings; the least confident leave first"] },
  score: { kept: ["按得分入选", "taken by its score"], dropped: ["空间不够，得分更高的先占", "too little room; better scores came first"] },
  target: { dropped: ["技能的目标篇幅已满", "the skill's target is full"] },
  chunk_limit: { dropped: ["超过单次片段数上限", "past the limit of chunks"] },
  duplicate: { dropped: ["与已有内容重复", "already in the prompt"] },
  window: { kept: ["光标附近的正文", "the text around the cursor"], trimmed: ["只取光标附近放得下的正文", "only what fits around the cursor"], dropped: ["离光标太远，放不下", "too far from the cursor to fit"] },
  skill_window: { trimmed: ["只取技能所要的光标附近正文", "only what the skill asks for around the cursor"], dropped: ["技能所要的范围里没有文字", "nothing but blanks in what the skill asks for"] },
  pinned: { kept: ["必须保留：任务、选区或指令", "never cut: task, selection or instruction"] },
  size_limit: { trimmed: ["单个片段过大，先截短", "too large for one fragment; cut first"], dropped: ["单个片段过大", "too large for one fragment"] },
  not_yet: { dropped: ["故事还没写到它开始的地方", "the story has not come to where it begins"] },
  passage_share: { dropped: ["长窗口中前文片段的份额已满", "over the share that passages have in a long budget"] },
  synopsis_share: { trimmed: ["前情提要超出份额，略去最早的几章", "over the share of the story so far, the earliest chapters left out"], dropped: ["超出前情提要的份额", "over the share of the story so far"] },
  thread_limit: { dropped: ["未收的伏笔太多，只示最先到期的", "too many open threads, those due first are shown"] },
  no_longer: { dropped: ["故事已过了它有效的地方", "the story is past where it holds"] },
  future: { dropped: ["在故事中位于光标之后", "it lies after the cursor in the story"] },
  unreadable: { dropped: ["读不了或格式不对", "cannot be read, or is not in its format"] },
};

let codes = {};
let language = localStorage.getItem("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");

export const locale = () => (language === "zh" ? "zh-CN" : "en");

const inLanguage = (pair) => pair?.[language === "zh" ? 0 : 1];

/** Return a text of the page; `{0}` and so on are replaced by the values. */
export function string(name, ...values) {
  const text = inLanguage(STRINGS[name]) ?? name;
  return text.replace(/\{(\d)\}/g, (_, at) => values[at]);
}

/** Return why a candidate is in the prompt or not. */
export function reason(rule, action) {
  return inLanguage(REASONS[rule]?.[action]) ?? rule;
}

/** Explain `CODE` or `CODE: message`; the message is left out where it only repeats the text of the code. */
export function codeText(warning) {
  const [code, ...rest] = warning.split(": ");
  const message = rest.join(": ");
  const texts = codes[code] ?? [];
  const repeats = texts.some((text) => message.startsWith(text));
  if (repeats && !texts.includes(message)) return `${code} · ${message}`;
  return [code, inLanguage(texts), repeats ? "" : message].filter(Boolean).join(" · ");
}

export const errorText = (error) => codeText(`${error.code}: ${error.message}`);

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
  for (const element of document.querySelectorAll("[data-string]")) element.textContent = string(element.dataset.string);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", string(element.dataset.label));
  for (const element of document.querySelectorAll("[data-title]")) element.title = string(element.dataset.title);
  document.getElementById("language").textContent = language === "zh" ? "English" : "中文";
  document.title = `CreoNow · ${string("title")}`;
}
