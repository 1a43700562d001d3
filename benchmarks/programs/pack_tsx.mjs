// @vscode/prompt-tsx with @microsoft/tiktokenizer: a chunk per candidate, its score as priority.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, ranks, input, output] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));
const tsx = require("@vscode/prompt-tsx");
const { createTokenizer, getRegexByEncoder, getSpecialTokensByEncoder } = require("@microsoft/tiktokenizer");

const FRESH_STARTS = 3;
const PASSAGE_TOKENS = 260;
const [system, chunks, manuscripts, budgets, passages] = JSON.parse(readFileSync(input, "utf8"));
const places = chunks.map((_, at) => at).sort((a, b) => chunks[a][2] - chunks[b][2]);
const priorities = [];
places.forEach((at, rank) => (priorities[at] = rank + 1));

class Page extends tsx.PromptElement {
  render() {
    const pieces = chunks.map(([id, text], at) =>
      vscpp(
        tsx.Chunk,
        { priority: priorities[at] },
        vscpp("references", { value: [new tsx.PromptReference({ variableName: id })] }),
        text,
      ),
    );
    return vscpp(
      vscppf,
      {},
      vscpp(tsx.SystemMessage, { priority: 1000 }, system),
      vscpp(tsx.UserMessage, {}, ...pieces, vscpp(tsx.TextChunk, { priority: 999 }, this.props.manuscript)),
    );
  }
}

class Story extends tsx.PromptElement {
  render() {
    const pieces = this.props.story.map((passage, at) => vscpp(tsx.TextChunk, { priority: at + 1 }, passage));
    return vscpp(
      vscppf,
      {},
      vscpp(tsx.SystemMessage, { priority: 1000 }, system),
      vscpp(tsx.UserMessage, {}, ...pieces),
    );
  }
}

class Counting {
  mode = tsx.OutputMode.Raw;
  tokenised = 0;
  tokenizer = createTokenizer(ranks, getSpecialTokensByEncoder("o200k_base"), getRegexByEncoder("o200k_base"));

  tokenLength(part) {
    return part.type === tsx.Raw.ChatCompletionContentPartKind.Text ? this.count(part.text) : 0;
  }

  countMessageTokens(message) {
    return this.count(text(message));
  }

  count(given) {
    this.tokenised += [...given].length;
    return this.tokenizer.encode(given).length;
  }
}

function text(message) {
  return message.content.map((part) => part.text ?? "").join("");
}

async function turn(tokenizer, budget, manuscript) {
  const endpoint = { modelMaxPromptTokens: budget };
  const rendered = await new tsx.PromptRenderer(endpoint, Page, { manuscript }, tokenizer).render();
  const dropped = rendered.omittedReferences.map((reference) => reference.anchor.variableName);
  return [rendered.messages.map(text).join(""), rendered.tokenCount, dropped];
}

async function continueStory(tokenizer, budget, story) {
  const endpoint = { modelMaxPromptTokens: budget };
  const rendered = await new tsx.PromptRenderer(endpoint, Story, { story }, tokenizer).render();
  return rendered.messages.map(text).join("");
}

async function timed(tokenizer, budget, manuscript) {
  const began = performance.now();
  const packed = await turn(tokenizer, budget, manuscript);
  return [performance.now() - began, packed];
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

const characters = (given) => [...given].length;
const always = characters(system) + chunks.reduce((sum, chunk) => sum + characters(chunk[1]), 0);
const all = manuscripts.reduce((sum, manuscript) => sum + always + characters(manuscript), 0);
const results = [];
for (const budget of budgets) {
  const cold = [];
  let tokenizer, packed;
  for (let start = 0; start < FRESH_STARTS; start += 1) {
    tokenizer = new Counting();
    const [milliseconds, first] = await timed(tokenizer, budget, manuscripts[0]);
    cold.push(milliseconds);
    packed = [first];
  }
  const warm = [];
  for (const manuscript of manuscripts.slice(1)) {
    const [milliseconds, next] = await timed(tokenizer, budget, manuscript);
    warm.push(milliseconds);
    packed.push(next);
  }
  const tokenised = tokenizer.tokenised / all;
  const stories = [];
  for (let at = 0; at < manuscripts.length; at += 1) {
    const story = passages.slice(0, Math.floor(budget / PASSAGE_TOKENS) + at);
    stories.push(await continueStory(tokenizer, budget, story));
  }
  results.push({ budget, cold: median(cold), warm: median(warm), tokenised, packed, stories });
}
writeFileSync(output, JSON.stringify(results));
