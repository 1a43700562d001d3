// Compiled, never run: what a caller may and may not write against the generated types.
import type {
  Answer,
  Channel,
  ErrorCode,
  HostCalls,
  InvokeFunction,
  IpcEnvelope,
  Notifications,
  OwnerChannel,
  RendererChannel,
  RpcError,
  WarningCode,
} from "../creonow.js";

declare const invoke: InvokeFunction;
declare const asOwner: InvokeFunction<Channel>;
declare function on<N extends keyof Notifications>(
  name: N,
  listener: (event: Notifications[N]) => void,
): void;

export async function callers(): Promise<string> {
  const pong = await invoke("app:ping");
  if (!pong.ok) {
    const code: ErrorCode = pong.error.code;
    return code === "TIMEOUT" ? "slow" : pong.error.message;
  }

  const made = await invoke("project:create", { rootPath: "/novels/长夜" });
  const projectId: string = made.ok ? made.data.projectId : "";
  await invoke("project:delete", { projectId, _meta: { timeoutMs: 1000, progressToken: "p" } });

  const granted = await asOwner("session:grant", { role: "renderer" });
  return granted.ok ? granted.data.token : pong.data.version;
}

export async function mistakes(): Promise<void> {
  // @ts-expect-error there is no such channel
  await invoke("app:pong");
  // @ts-expect-error a renderer may not grant
  await invoke("session:grant", { role: "renderer" });
  // @ts-expect-error the payload is required
  await invoke("project:setCurrent");
  // @ts-expect-error projectId is missing
  await invoke("project:setCurrent", { name: "长夜" });
  // @ts-expect-error rootPath is a string
  await invoke("project:create", { rootPath: 7 });
  // @ts-expect-error the field is projectId
  await invoke("project:delete", { projectID: "prj_1" });
  // @ts-expect-error there is no such role
  await asOwner("session:grant", { role: "guest" });
  // @ts-expect-error the data is there only if it went well
  (await invoke("app:ping")).data;
}

on("$/progress", (event) => {
  const token: string | number = event.token;
  const sequence: number = event.seq;
  return [token, sequence];
});

export type EveryChannelHasOneRole = [
  Exclude<Channel, RendererChannel | OwnerChannel>,
  RendererChannel & OwnerChannel,
] extends [never, never]
  ? true
  : never;
export const everyChannelHasOneRole: EveryChannelHasOneRole = true;

export function retryable(error: RpcError): boolean {
  return error.data.retryable && error.data.code !== "CANCELED";
}

export const warning: WarningCode = "KG_UNAVAILABLE";

export function isIndexing(result: Answer<"context:assemble">): boolean {
  // @ts-expect-error there is no such warning
  result.warnings.includes("RETRIEVAL_INDEXIN");
  // @ts-expect-error nor such a notice
  result.notices.some(({ code }) => code === "RETRIEVAL_INDEXIN");
  return result.notices.some(({ code }) => code === "RETRIEVAL_INDEXING") || result.warnings.includes("RETRIEVAL_INDEXING");
}
export const envelope: IpcEnvelope<Answer<"app:ping">> = {
  ok: false,
  error: { code: "NOT_FOUND", message: "There is no such thing." },
};
export type Calls = HostCalls;
