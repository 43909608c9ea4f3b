import type { InputItem, OutputItem, OutputMessage, TokenLogprob } from "@plenum/core";
import { toWireLogprob } from "../logprobs.ts";

/** An output item as it is at that moment. */
export function toOutputItem(item: OutputItem): Record<string, unknown> {
  switch (item.type) {
    case "message":
      return { id: item.id, type: "message", status: item.status, role: "assistant", content: toParts(item) };
    case "reasoning":
      return {
        id: item.id,
        type: "reasoning",
        status: item.status,
        summary: [],
        content: item.text === "" ? [] : [reasoningPart(item.text)],
      };
    case "function_call":
      return {
        id: item.id,
        type: "function_call",
        status: item.status,
        call_id: item.callId,
        name: item.name,
        arguments: item.arguments,
      };
  }
}

function toParts({ text, refusal, logprobs, status }: OutputMessage): Record<string, unknown>[] {
  const parts: Record<string, unknown>[] = [];
  if (text !== "" || (refusal === "" && status !== "in_progress")) parts.push(textPart(text, logprobs));
  if (refusal !== "") parts.push(refusalPart(refusal));
  return parts;
}

export function textPart(text: string, logprobs: readonly TokenLogprob[]): Record<string, unknown> {
  return { type: "output_text", text, annotations: [], logprobs: logprobs.map(toWireLogprob) };
}

export function refusalPart(refusal: string): Record<string, unknown> {
  return { type: "refusal", refusal };
}

export function reasoningPart(text: string): Record<string, unknown> {
  return { type: "reasoning_text", text };
}

/** Items of a request as `input_items` lists them; ids count from the first item. */
export function toInputItem(item: InputItem, x: string, index: number): Record<string, unknown> {
  const id = (kind: string): string => `${kind}_${x}_in${index}`;
  switch (item.type) {
    case "message": {
      const textType = item.role === "assistant" ? "output_text" : "input_text";
      const content = item.content.map((part) =>
        part.type === "text"
          ? { type: textType, text: part.text, ...(textType === "output_text" ? { annotations: [] } : {}) }
          : { type: "input_image", image_url: part.url, detail: part.detail ?? "auto" },
      );
      return { id: id("msg"), type: "message", status: "completed", role: item.role, content };
    }
    case "function_call":
      return {
        id: id("fc"),
        type: "function_call",
        status: "completed",
        call_id: item.callId,
        name: item.name,
        arguments: item.arguments,
      };
    case "function_call_output":
      return {
        id: id("fco"),
        type: "function_call_output",
        status: "completed",
        call_id: item.callId,
        output: item.output,
      };
    case "reasoning":
      return { id: id("rs"), type: "reasoning", status: "completed", summary: [], content: [reasoningPart(item.text)] };
  }
}
