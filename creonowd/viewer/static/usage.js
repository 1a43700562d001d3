// What the calls to models of the last 30 days used and cost, by the providers' own counts.

import { fill, h, table } from "./dom.js";
import { errorText, locale, number, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";

const DAYS = 30;
const HEADS = ["usageModel", "usageCalls", "usageInput", "usageRead", "usageWritten", "usageOutput", "usageCost", "usageSaved"];

/** Ask for the usage and show it. */
export async function showUsage(box) {
  const from = Math.max(0, Date.now() - DAYS * 86_400_000);
  const answer = await invoke("ai:usage", { projectId: place.projectId, groupBy: "model", from });
  fill(box, ...(answer.ok ? report(answer.data) : [h("p", { class: "faint" }, errorText(answer.error))]));
}

function report({ groups, total, lostTo, currency, pricesAsOf }) {
  if (!groups.length) return [h("p", { class: "faint" }, string("noUsage"))];
  const money = new Intl.NumberFormat(locale(), { style: "currency", currency, maximumFractionDigits: 4 });
  const rows = [...groups, { ...total, key: string("total") }].map((one) => [one.key, ...[one.calls, one.inputTokens,
    one.cacheReadTokens, one.cacheWriteTokens, one.outputTokens].map(number), money.format(one.cost), money.format(one.saved)]);
  const lost = lostTo.map((one) => h("li", {}, string("usageLost", one.sourceRef, one.tokens, string("calls", one.calls))));
  return [
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": string("usage") }, table(HEADS.map((head) => string(head)), rows, [1, 2, 3, 4, 5, 6, 7])),
    lost.length ? h("ul", {}, ...lost) : null,
    h("p", { class: "faint" }, string("usagePrices", pricesAsOf), " ", total.unpricedCalls ? string("usageUnpriced", total.unpricedCalls) : "", " ",
      total.unreportedCalls ? string("usageUnreported", total.unreportedCalls) : ""),
  ];
}
