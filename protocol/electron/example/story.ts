// An end-to-end story of that app; compiled, never run here.
import { joinHarness, startHarness } from "@creonow/electron/harness";
import type { Harness, StoryScript } from "@creonow/electron/harness";

export async function story(): Promise<string> {
  const harness: Harness = await startHarness({ deterministic: true, debug: true });
  const { projectId } = await harness.makeProject("长夜", { "第一章.md": "夜。" });
  const { value } = await harness.call("e2e:echo", { value: projectId });
  const changed = await harness.event("context:creonow:changed", { where: ({ paths }) => paths.length > 0 });
  const line = await harness.log("context_watch_started", { timeoutMs: 1000 });
  const script: StoryScript = { steps: [{ text: "雨停了。", piece: 2 }, { fail: "AI_RATE_LIMITED" }], verdicts: ["{"] };
  await harness.script(script);
  await harness.stop();
  return [value, changed.projectId, line.level].join();
}

export async function lookIntoAnApp(userData: string): Promise<number> {
  const harness = await joinHarness({ userData, waitMs: 30_000 });
  harness.handle("context:source:fetch", ({ name }) => ({ chunks: [{ source: name, content: "林远怕水。" }] }));
  const refused = await harness.failure("project:setCurrent", { projectId: "prj_none" });
  const echoed = await harness.invoke("e2e:echo", { value: refused.code });
  await harness.kill();
  await harness.start();
  return echoed.ok ? (await harness.call("project:list")).items.length : 0;
}

export async function mistakes(harness: Harness): Promise<void> {
  // @ts-expect-error there is no such channel
  await harness.call("app:pong");
  // @ts-expect-error an app is joined by its folder
  await joinHarness();
  // @ts-expect-error a step has no such field
  await harness.script({ steps: [{ txt: "雨停了。" }] });
  // @ts-expect-error there is no such error
  await harness.script({ steps: [{ fail: "AI_TIRED" }] });
  // @ts-expect-error a verdict says which constraints are broken
  await harness.script({ verdicts: [{ unsure: [1] }] });
  // @ts-expect-error files are texts
  await harness.makeProject("长夜", { "第一章.md": 7 });
}
