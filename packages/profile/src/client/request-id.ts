let made = 0;

/** An id for logs of both sides; nothing rests on its being hard to guess. */
export function createRequestId(): string {
  made += 1;
  const random = Math.floor(Math.random() * 2 ** 48).toString(36);
  return `req_${Date.now().toString(36)}${made.toString(36)}${random}`;
}
