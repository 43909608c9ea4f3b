interface StreamFields {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: { readonly include_obfuscation?: boolean | null | undefined } | null | undefined;
}

/** Nothing is padded here, and without a stream its options say nothing. */
export function streamOptionsWithoutEffect({ stream, stream_options: options }: StreamFields): string[] {
  if (options === null || options === undefined) return [];
  if (!stream) return ["stream_options"];
  return options.include_obfuscation == null ? [] : ["stream_options.include_obfuscation"];
}
