// One call of every channel, in this order, on one project.
//
// A new channel needs a line here: its name, a payload, and what must be true of the data. The payload
// may be a function of the story: `projectId`, `rootPath`, and `data`, what each channel answered last.
// The compiler checks every line against the generated types; the test checks the data against the schema.

/** @import { Answer, CallableChannel, Payload } from "../index.js" */
/** @typedef {{ [C in CallableChannel]: Answer<C> }} Answers */
/** @typedef {{ projectId: string, rootPath: string, data: Answers }} Story */

export const FILES = {
  "第一章.md": "林远推开门。🖋️\n\n夜色很深。\n",
  "第二章.md": "渡口的夜色更深。\n",
  ".creonow/settings/世界观.md": "没有魔法。\n",
  ".creonow/characters/林远.md": "冷静，少言。\n",
};

const SKILL = "---\nname: 添一笔暮色\ndescription: 加一处黄昏的光线\nprompt:\n  user: |\n    {{text}}\n---\n";

/**
 * @template {CallableChannel} C
 * @param {C} channel
 * @param {Payload<C> | ((story: Story) => Payload<C>)} payload
 * @param {(data: Answer<C>, story: Story) => unknown} check
 */
function sample(channel, payload, check) {
  return { channel, payload, check };
}

/** @param {Story} story */
const inProject = ({ projectId }) => ({ projectId });
/** @param {Story} story */
const oneRun = ({ projectId }) => ({ projectId, runId: "run_sample" });
/** @param {Story} story */
const atCursor = ({ projectId }) => ({
  projectId,
  documentId: "第一章.md",
  cursorPosition: "林远推开门。🖋️".length,
  skillId: "builtin:continue",
});
/** @param {Story} story */
const conversation = ({ projectId }) => ({ projectId, conversationId: "con-1" });
/** @param {Story} story */
const saved = ({ projectId, data }) => ({
  projectId,
  conversationId: data["context:creonow:conversations:save"].index.id,
});
/** @param {Story} story */
const lookInto = (story) => ({ ...conversation(story), id: story.data["context:files:put"].ref.id });

export const SAMPLES = [
  sample("app:ping", {}, ({ pong }) => pong),
  sample("app:health", {}, ({ status }) => status === "ok"),
  sample("app:metrics", {}, ({ channels }) => (channels["app:ping"]?.count ?? 0) > 0),

  sample("rpc.discover", {}, ({ methods }) => Array.isArray(methods) && methods.length > 0),

  sample("project:create", { name: "短昼" }, ({ name, rootPath }) => name === "短昼" && rootPath.endsWith("短昼")),
  sample("project:setCurrent", inProject, ({ projectId }) => projectId.startsWith("prj_")),
  sample("project:story", inProject, ({ documents, outside }) => Array.isArray(documents) && Array.isArray(outside)),
  sample("story:summarise", inProject, ({ origin, dryRun }) => origin === "extract" && !dryRun),
  sample("story:summary:list", inProject, ({ items }) => Array.isArray(items)),
  sample("story:summary:set", (story) => ({ ...inProject(story), documentId: "第一章.md", text: "林远到了渡口。" }), ({ origin }) => origin === "author"),
  sample("story:summary:get", (story) => ({ ...inProject(story), documentId: "第一章.md" }), ({ text }) => text === "林远到了渡口。"),
  sample("story:threads", inProject, ({ items, open }) => items.length === 0 && open === 0),
  sample("project:getCurrent", {}, ({ projectId }, story) => projectId === story.projectId),
  sample("project:list", {}, ({ items }) => items.length === 2),

  sample("context:creonow:ensure", inProject, ({ ensured }) => ensured),
  sample("context:creonow:watch:start", inProject, ({ watching }) => watching),
  sample("context:creonow:status", inProject, ({ exists, watching }) => exists && watching),
  sample("context:creonow:rules:get", inProject, ({ fragments }) => fragments.length > 0),
  sample("context:creonow:rules:list", inProject, ({ items }) => items.some(({ path }) => path.endsWith("style.md"))),
  sample(
    "context:creonow:rules:read",
    ({ projectId, data }) => ({ projectId, path: data["context:creonow:rules:list"].items[0]?.path ?? "" }),
    ({ content }) => content !== "",
  ),
  sample("context:creonow:characters:list", inProject, ({ items }) => items.length === 1),
  sample(
    "context:creonow:characters:read",
    ({ projectId, data }) => ({ projectId, path: data["context:creonow:characters:list"].items[0]?.path ?? "" }),
    ({ content }) => content === "冷静，少言。\n",
  ),
  sample("context:creonow:settings:list", inProject, ({ items }) => items[0]?.path.endsWith("世界观.md")),
  sample(
    "context:creonow:settings:read",
    ({ projectId, data }) => ({ projectId, path: data["context:creonow:settings:list"].items[0]?.path ?? "" }),
    ({ content }) => content === "没有魔法。\n",
  ),
  sample("context:creonow:watch:stop", inProject, ({ watching }) => !watching),

  sample("context:budget:get", inProject, ({ totalBudgetTokens }) => totalBudgetTokens === 6000),
  sample(
    "context:budget:update",
    ({ projectId, data }) => ({ projectId, ...data["context:budget:get"], outputReserveTokens: 1000 }),
    ({ totalBudgetTokens }) => totalBudgetTokens === 6500,
  ),

  sample(
    "constraints:create",
    ({ projectId }) => ({ projectId, constraint: { text: "不得出现魔法" } }),
    ({ constraint }) => constraint.id.startsWith("con_"),
  ),
  sample("constraints:list", inProject, ({ constraints }) => constraints.length === 1),
  sample("constraints:get", inProject, ({ constraints }) => constraints.items[0] === "不得出现魔法"),
  sample(
    "constraints:update",
    ({ projectId, data }) => ({
      projectId,
      constraintId: data["constraints:create"].constraint.id,
      patch: { priority: 7 },
      expectedRevision: data["constraints:list"].revision,
    }),
    ({ constraint }) => constraint.priority === 7,
  ),
  sample(
    "constraints:set",
    ({ projectId }) => ({ projectId, constraints: { version: 1, items: ["不得出现魔法", "只写一夜"] } }),
    ({ constraints }) => constraints.items.length === 2,
  ),
  sample(
    "constraints:delete",
    ({ projectId, data }) => ({ projectId, constraintId: data["constraints:create"].constraint.id }),
    ({ deletedConstraintId }, { data }) => deletedConstraintId === data["constraints:create"].constraint.id,
  ),

  sample(
    "context:document:sync",
    ({ projectId }) => ({ projectId, documentId: "第一章.md", version: 1, text: "夜🖋️" }),
    ({ length }) => length === 4,
  ),
  sample("context:document:list", inProject, ({ items }) => items[0]?.open),
  sample(
    "context:document:close",
    ({ projectId }) => ({ projectId, documentId: "第一章.md" }),
    ({ closed }) => closed,
  ),

  sample("skill:list", inProject, ({ items }) => items.some(({ id }) => id === "builtin:continue")),
  sample("skill:read", { skillId: "builtin:continue" }, ({ skill }) => skill.content !== ""),
  sample(
    "skill:write",
    ({ projectId }) => ({ scope: "project", projectId, slug: "dusk", content: SKILL }),
    ({ skill }) => skill.id === "project:dusk",
  ),
  sample("skill:validate", { content: "no front matter" }, ({ valid }) => !valid),

  sample(
    "context:source:register",
    ({ projectId }) => ({ projectId, layer: "retrieved", name: "kg", kind: "kg" }),
    ({ registered }) => registered,
  ),
  sample("context:assemble", atCursor, ({ prompt }) => /🖋️\n### .*光标之后\n\n\n夜色/.test(prompt)),
  sample(
    "context:inspect",
    (story) => ({ ...atCursor(story), debugMode: true }),
    ({ layersDetail }) => layersDetail.rules.content.includes("只写一夜"),
  ),
  sample(
    "context:retrieve",
    ({ projectId }) => ({ projectId, documentId: "第一章.md", cursorPosition: 0, query: "夜色", wait: true }),
    ({ passages }) => passages[0]?.documentId === "第二章.md",
  ),
  sample("context:source:unregister", { name: "kg" }, ({ unregistered }) => unregistered),

  sample("ai:skill:run", (story) => ({ ...atCursor(story), ...oneRun(story) }), ({ output }) => output.includes("林远")),
  sample("ai:skill:cancel", { runId: "run_none" }, ({ canceled }) => !canceled),
  sample("ai:run:list", inProject, ({ runs }) => runs.length === 1 && runs[0]?.status === "pending"),
  sample("ai:run:accept", oneRun, ({ run }) => run.status === "accepted"),
  sample("ai:run:discard", oneRun, ({ run }) => run.status === "discarded"),
  sample("ai:usage", { groupBy: "model" }, ({ groups, total, currency }) => Array.isArray(groups) && total.calls >= 0 && currency === "USD"),
  sample("ai:config:get", {}, ({ provider }) => provider === "fake"),
  sample("ai:config:set", { backends: { spare: { provider: "fake", model: "m" } } }, ({ backends }) => backends.length === 2),
  sample("ai:config:probe", { backend: "spare" }, ({ model }) => model === "m"),

  sample(
    "context:creonow:conversations:save",
    ({ projectId }) => ({ projectId, conversation: { messages: [{ role: "user", content: "续写" }] } }),
    ({ saved }) => saved,
  ),
  sample("context:creonow:conversations:list", inProject, ({ items }) => items.length === 1),
  sample("context:creonow:conversations:read", saved, ({ conversation }) => conversation.messages.length === 1),
  sample(
    "context:creonow:conversations:analysis:update",
    (story) => ({ ...saved(story), analysis: { summary: "续写了一段" } }),
    ({ updated }) => updated,
  ),

  sample(
    "context:files:put",
    (story) => ({ ...conversation(story), kind: "artifact", hint: "搜索", content: "林远\n夜\n" }),
    ({ ref }) => ref.id.startsWith("ctx_"),
  ),
  sample("context:files:stats", inProject, ({ files }) => files === 1),
  sample(
    "context:files:export",
    (story) => ({ ...conversation(story), path: `${story.rootPath}/archive.tar.gz` }),
    ({ files }) => files === 1,
  ),
  sample(
    "context:files:import",
    ({ projectId, rootPath }) => ({ projectId, path: `${rootPath}/archive.tar.gz`, conversationId: "con-2" }),
    ({ conversationId }) => conversationId === "con-2",
  ),
  sample("context.list", conversation, ({ items }) => items.length === 1),
  sample("context.read", lookInto, ({ content }) => content === "林远\n夜\n"),
  sample("context.tail", lookInto, ({ content }) => content.includes("夜")),
  sample("context.grep", (story) => ({ ...lookInto(story), pattern: "林远" }), ({ matches }) => matches.length === 1),

  sample(
    "context:files:register",
    (story) => ({ ...conversation(story), kind: "artifact", hint: "工具", recipe: { type: "json", value: [1] } }),
    ({ ref }) => ref.id.startsWith("ctx_"),
  ),
  sample("context:files:prune", inProject, ({ keptFiles }) => keptFiles > 0),
  sample("context:files:delete", lookInto, ({ deleted }) => deleted === 1),

  sample(
    "context:tool:compress",
    (story) => ({ ...conversation(story), tool: "Bash", args: { command: "ls" }, result: { stdout: "", exit_code: 0 } }),
    ({ summary }) => summary.startsWith("[Bash] ls: exit code 0"),
  ),
  sample(
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
  ),
  sample("context:history:read", conversation, ({ rounds }) => rounds[0]?.messages.length === 4),
  sample(
    "context:build",
    (story) => ({ ...conversation(story), input: "然后呢？", systemPrompt: "你是助手。" }),
    ({ messages }) => messages.at(-1)?.content === "然后呢？",
  ),
  sample("context:codelaw:status", inProject, ({ needsGenerating, prompt }) => needsGenerating && prompt !== ""),
  sample("context:history:clear", conversation, ({ rounds }) => rounds === 1),

  sample("tokens:count", { text: "林远推开门。" }, ({ tokens }) => tokens > 0),
  sample("tokens:corrections:list", {}, ({ models }) => Array.isArray(models)),
  sample("tokens:corrections:reset", {}, ({ models }) => models.length === 0),

  sample("session:grant", { role: "renderer" }, ({ token }) => token !== ""),
  sample("session:revoke", ({ data }) => ({ token: data["session:grant"].token }), ({ revoked }) => revoked),
  sample("viewer:open", inProject, ({ url }) => url.startsWith("http://127.0.0.1:")),
  sample("viewer:projects", {}, ({ items }) => items.length === 2 && !items.some((item) => "rootPath" in item)),
  sample("viewer:skills", inProject, ({ items }) => items.some(({ id, valid }) => id === "builtin:continue" && valid)),
  sample("viewer:tree", inProject, ({ exists }) => exists),
  sample("viewer:write_down", ({ projectId }) => ({ projectId, kind: "note", name: "码头", text: "镇上没有码头。" }), ({ path }) => path === ".creonow/settings/码头.md"),
  sample("viewer:file:read", ({ projectId }) => ({ projectId, path: ".creonow/settings/码头.md" }), ({ text }) => text.endsWith("镇上没有码头。\n")),
  sample(
    "viewer:file:write",
    ({ projectId, data }) => ({ projectId, path: ".creonow/settings/码头.md", revision: data["viewer:file:read"].revision, edits: [{ from: 0, to: 0, text: "" }] }),
    ({ revision }) => revision !== "",
  ),
  sample("viewer:prove", { nonce: "0123456789abcdef".repeat(4) }, ({ proofs }) => proofs.length > 0),
  sample("ipc:invoke", { channel: "app:ping" }, ({ ok }) => ok),

  sample(
    "constraints:check",
    ({ projectId }) => ({ projectId, documentId: "第二章.md", text: "林远不说话。" }),
    ({ verdict }) => verdict.violations.length === 0,
  ),
  sample(
    "context:document:read",
    ({ projectId }) => ({ projectId, documentId: "第二章.md" }),
    ({ text }) => text === "渡口的夜色更深。\n",
  ),
  sample(
    "context:document:write",
    ({ projectId, data }) => ({
      projectId,
      documentId: "第二章.md",
      revision: data["context:document:read"].revision,
      edits: [{ from: 0, to: 0, text: "天亮前，" }],
    }),
    ({ undo }) => undo !== "",
  ),
  sample(
    "context:undo",
    ({ projectId, data }) => ({ projectId, undo: data["context:document:write"].undo }),
    ({ path }) => path === "第二章.md",
  ),
  sample(
    "context:creonow:inject:set",
    ({ projectId }) => ({ projectId, path: ".creonow/settings/世界观.md", inject: "always" }),
    ({ undo }) => undo !== "",
  ),
  sample("context:subjects", inProject, ({ items }) => items.some(({ name }) => name === "林远")),
  sample(
    "context:explain",
    (story) => ({ ...atCursor(story), about: "林远", debugMode: true }),
    ({ verdict }) => verdict === "in",
  ),

  sample("project:delete", inProject, ({ deleted }) => deleted),
];
