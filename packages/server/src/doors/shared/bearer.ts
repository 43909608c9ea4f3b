/** Token of an `Authorization: Bearer` header, case-insensitive (RFC 6750); undefined without one. */
export function bearerIn(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}
