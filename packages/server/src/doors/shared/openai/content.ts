import type { ContentPart, ImagePart } from "@plenum/core";
import { compact } from "../compact.ts";
import { invalid, refuse } from "./fields.ts";

export function text(value: string): ContentPart {
  return { type: "text", text: value };
}

/** `original` asks for more than any model here makes of an image: it is taken as the highest. */
export type WireDetail = "low" | "high" | "auto" | "original" | null | undefined;

/**
 * @param param where the URL stands in the body.
 * @throws CoreError for a URL that is no image in itself.
 */
export function image(url: string, detail: WireDetail, param: string): ImagePart {
  if (!url.startsWith("data:")) {
    refuse(param, "images are not fetched from the web; send the bytes as a data: URL");
  }
  if (!/^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/_-]+={0,2}$/.test(url)) {
    invalid(param, "it must be data:image/<type>;base64,<bytes>");
  }
  return { type: "image", url, ...compact({ detail: detail === "original" ? ("high" as const) : detail }) };
}
