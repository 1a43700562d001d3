// What the calls to models of the last 30 days used and cost, by the providers' own counts.

import { byId, fill, h, table } from "./dom.js";
import { invoke } from "./rpc.js";
import { errorText, string } from "./strings.js";

const DAYS = 30;
let contents = () => [];

/** Show the usage again, after the language has changed. */
export const showUsage = () => fill(byId("usage"), ...contents());

/** Load the usage of a project. */
export async function loadUsage(projectId) {
  const from = Math.max(0, Date.now() - DAYS * 86_400_000);
  const answer = await invoke("ai:usage", { projectId, groupBy: "model", from });
  contents = () => (answer.ok ? report(answer.data) : [h("p", { class: "faint" }, errorText(answer.error))]);
  showUsage();
}

function report({ groups, total, lostTo, currency, pricesAsOf }) {
  if (!groups.length) return [h("p", { class: "faint" }, string("noUsage"))];
  const heads = ["usageModel", "usageCalls", "usageInput", "usageRead", "usageWritten", "usageOutput", "usageCost", "usageSaved"];
  const rows = [...groups, { ...total, key: string("total") }].map((one) => [one.key, one.calls, one.inputTokens,
    one.cacheReadTokens, one.cacheWriteTokens, one.outputTokens, one.cost.toFixed(4), one.saved.toFixed(4)].map(String));
  const lost = lostTo.map((one) => h("li", {}, string("usageLost", one.sourceRef, one.tokens, one.calls)));
  return [
    table(heads.map((head) => string(head)), rows, [1, 2, 3, 4, 5, 6, 7]),
    lost.length ? h("ul", {}, ...lost) : null,
    h("p", { class: "faint" }, string("usagePrices", currency, pricesAsOf, total.unpricedCalls, total.unreportedCalls)),
  ];
}
