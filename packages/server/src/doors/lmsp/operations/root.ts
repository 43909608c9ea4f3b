/** Path at which the native interface begins. */
export const root = "/lmsp/v1";
