import { type ResponseEvent, type ResponseRecord, requestDefaults } from "@plenum/core";

export const limits = { bytesPerResponse: 1_000_000, bytesTotal: 10_000_000 };

type Changes = Partial<Pick<ResponseRecord, "owner" | "epoch">> & {
  readonly request?: Partial<ResponseRecord["request"]>;
  readonly response?: Partial<ResponseRecord["response"]>;
};

/** What a client wrote, and what a model did: neither may be found where no text is kept. */
export const clientText = "what the client wrote";
export const modelText = "what the model wrote";

export function record(id: string, { request = {}, response = {}, ...changes }: Changes = {}): ResponseRecord {
  return {
    request: {
      ...requestDefaults,
      model: "m",
      store: true,
      input: {
        kind: "items",
        items: [{ type: "message", role: "user", content: [{ type: "text", text: clientText }] }],
      },
      ...request,
    },
    owner: "ann",
    fairnessKey: "principal:ann",
    epoch: 1,
    ...changes,
    response: {
      id,
      status: "queued",
      model: "m",
      door: "lmsp",
      output: [],
      finishes: [],
      timings: {},
      attempt: 1,
      priority: 0,
      createdAt: 1_000,
      metadata: {},
      ...response,
    },
  };
}

/** The same response after its end. */
export function ended(before: ResponseRecord, finishedAt = 5_000): ResponseRecord {
  const { id } = before.response;
  const message = { id: `msg_${id}_0`, candidate: 0, index: 0, status: "completed", type: "message" } as const;
  return {
    ...before,
    response: {
      ...before.response,
      status: "completed",
      output: [{ ...message, text: modelText, refusal: "", logprobs: [] }],
      startedAt: 2_000,
      finishedAt,
    },
  };
}

export function delta(text: string): ResponseEvent {
  return { type: "response.output_text.delta", atMs: 1, itemId: "msg_a_0", index: 0, delta: text };
}

export function completed(of: ResponseRecord): ResponseEvent {
  return { type: "response.completed", atMs: 9, response: ended(of).response };
}
