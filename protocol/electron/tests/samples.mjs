// One story that visits every family of channels, in this order, on one project.
//
// A new family needs a line here: [channel, payload, what must be true of the data]. The payload may be
// a function of the story: `projectId`, `rootPath`, and `data`, what each channel answered last. That
// the data fits the contract's own type is checked anyway.

export const FILES = {
  "第一章.md": "林远推开门。🖋️\n\n夜色很深。\n",
  ".creonow/settings/世界观.md": "没有魔法。\n",
  ".creonow/characters/林远.md": "冷静，少言。\n",
};

const inProject = ({ projectId }) => ({ projectId });
const atCursor = ({ projectId }) => ({
  projectId,
  documentId: "第一章.md",
  cursorPosition: "林远推开门。🖋️".length,
  skillId: "builtin:continue",
});
const conversation = ({ projectId }) => ({ projectId, conversationId: "con-1" });
const lookInto = (story) => ({ ...conversation(story), id: story.data["context:files:put"].ref.id });

export const SAMPLES = [
  ["app:ping", {}, ({ pong }) => pong],
  ["app:health", {}, ({ status }) => status === "ok"],
  ["app:metrics", {}, ({ channels }) => channels["app:ping"].count > 0],

  ["rpc.discover", {}, ({ methods }) => methods.length > 0],

  ["project:create", ({ rootPath }) => ({ rootPath }), ({ name }) => name === "长夜"],
  ["project:setCurrent", inProject, ({ projectId }) => projectId.startsWith("prj_")],
  ["project:getCurrent", {}, ({ projectId }, story) => projectId === story.projectId],
  ["project:list", {}, ({ items }) => items.length === 1],

  ["context:creonow:ensure", inProject, ({ ensured }) => ensured],
  ["context:creonow:watch:start", inProject, ({ watching }) => watching],
  ["context:creonow:status", inProject, ({ exists, watching }) => exists && watching],
  ["context:creonow:rules:get", inProject, ({ fragments }) => fragments.length > 0],
  ["context:creonow:settings:list", inProject, ({ items }) => items[0].path.endsWith("世界观.md")],
  [
    "context:creonow:settings:read",
    ({ projectId, data }) => ({ projectId, path: data["context:creonow:settings:list"].items[0].path }),
    ({ content }) => content === "没有魔法。\n",
  ],
  ["context:creonow:watch:stop", inProject, ({ watching }) => !watching],

  ["context:budget:get", inProject, ({ totalBudgetTokens }) => totalBudgetTokens === 6000],
  [
    "context:budget:update",
    ({ projectId, data }) => ({ projectId, ...data["context:budget:get"], outputReserveTokens: 1000 }),
    ({ totalBudgetTokens }) => totalBudgetTokens === 6500,
  ],

  [
    "constraints:create",
    ({ projectId }) => ({ projectId, constraint: { text: "不得出现魔法" } }),
    ({ constraint }) => constraint.id.startsWith("con_"),
  ],
  ["constraints:list", inProject, ({ constraints }) => constraints.length === 1],
  ["constraints:get", inProject, ({ constraints }) => constraints.items[0] === "不得出现魔法"],

  [
    "context:document:sync",
    ({ projectId }) => ({ projectId, documentId: "第一章.md", version: 1, text: "夜🖋️" }),
    ({ length }) => length === 4,
  ],
  [
    "context:document:close",
    ({ projectId }) => ({ projectId, documentId: "第一章.md" }),
    ({ closed }) => closed,
  ],

  ["skill:list", inProject, ({ items }) => items.some(({ id }) => id === "builtin:continue")],
  ["skill:read", { skillId: "builtin:continue" }, ({ skill }) => skill.content !== ""],
  ["skill:validate", { content: "no front matter" }, ({ valid }) => !valid],

  [
    "context:source:register",
    ({ projectId }) => ({ projectId, layer: "retrieved", name: "kg", kind: "kg" }),
    ({ registered }) => registered,
  ],
  ["context:assemble", atCursor, ({ prompt }) => /🖋️\n### .*光标之后\n\n\n夜色/.test(prompt)],
  [
    "context:inspect",
    (story) => ({ ...atCursor(story), debugMode: true }),
    ({ layersDetail }) => layersDetail.rules.content.includes("不得出现魔法"),
  ],
  ["context:source:unregister", { name: "kg" }, ({ unregistered }) => unregistered],

  ["ai:skill:run", atCursor, ({ output }) => output.includes("林远")],
  ["ai:skill:cancel", { runId: "run_none" }, ({ canceled }) => !canceled],
  ["ai:config:get", {}, ({ provider }) => provider === "fake"],

  [
    "context:creonow:conversations:save",
    ({ projectId }) => ({ projectId, conversation: { messages: [{ role: "user", content: "续写" }] } }),
    ({ saved }) => saved,
  ],

  [
    "context:files:put",
    (story) => ({ ...conversation(story), kind: "artifact", hint: "搜索", content: "林远\n夜\n" }),
    ({ ref }) => ref.id.startsWith("ctx_"),
  ],
  ["context:files:stats", inProject, ({ files }) => files === 1],
  [
    "context:files:export",
    (story) => ({ ...conversation(story), path: `${story.rootPath}/archive.tar.gz` }),
    ({ files }) => files === 1,
  ],
  ["context.list", conversation, ({ items }) => items.length === 1],
  ["context.read", lookInto, ({ content }) => content === "林远\n夜\n"],
  ["context.tail", lookInto, ({ content }) => content.includes("夜")],
  ["context.grep", (story) => ({ ...lookInto(story), pattern: "林远" }), ({ matches }) => matches.length === 1],

  ["viewer:open", inProject, ({ url }) => url.startsWith("http://127.0.0.1:")],
  [
    "context:tool:compress",
    (story) => ({ ...conversation(story), tool: "Bash", args: { command: "ls" }, result: { stdout: "", exit_code: 0 } }),
    ({ summary }) => summary.startsWith("[Bash] ls: exit code 0"),
  ],
  [
    "context:history:append",
    (story) => ({
      ...conversation(story),
      messages: [
        { role: "user", content: "林远在哪？" },
        { role: "assistant", content: "", toolCalls: [{ id: "c1", name: "Grep", arguments: { pattern: "林远" } }] },
        { role: "tool", toolCallId: "c1", content: "第一章.md:1:林远推开门。" },
        { role: "assistant", content: "在门口。" },
      ],
    }),
    ({ appended, totalRounds }) => appended === 4 && totalRounds === 1,
  ],
  ["context:history:read", conversation, ({ rounds }) => rounds[0].messages.length === 4],
  [
    "context:build",
    (story) => ({ ...conversation(story), input: "然后呢？", systemPrompt: "你是助手。" }),
    ({ messages }) => messages.at(-1).content === "然后呢？",
  ],
  ["context:codelaw:status", inProject, ({ needsGenerating, prompt }) => needsGenerating && prompt !== ""],
  ["context:history:clear", conversation, ({ rounds }) => rounds === 1],

  ["tokens:count", { text: "林远推开门。" }, ({ tokens }) => tokens > 0],

  ["session:grant", { role: "renderer" }, ({ token }) => token !== ""],
  ["session:revoke", ({ data }) => ({ token: data["session:grant"].token }), ({ revoked }) => revoked],
  ["viewer:open", inProject, ({ url }) => url.startsWith("http://127.0.0.1:")],
  ["ipc:invoke", { channel: "app:ping" }, ({ ok }) => ok],

  ["project:delete", inProject, ({ deleted }) => deleted],
];

/** Tell the family of a channel: `context:creonow:rules:get` is of `context:creonow:`. */
export function familyOf(channel) {
  return /^(?:\w+:\w+:|\w+[:.])/.exec(channel)?.[0] ?? channel;
}
