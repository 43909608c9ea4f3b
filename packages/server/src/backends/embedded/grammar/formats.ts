const month31 = "(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])";
const month30 = "(0[469]|11)-(0[1-9]|[12]\\d|30)";
const february = "02-(0[1-9]|1\\d|2[0-8])";
const leapYear = "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const date = `(\\d{4}-(${month31}|${month30}|${february})|${leapYear}-02-29)`;
const time = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
const durationDate = "(\\d{1,4}Y(\\d{1,3}M)?(\\d{1,3}D)?|\\d{1,3}M(\\d{1,3}D)?|\\d{1,4}D)";
const durationTime = "T(\\d{1,4}H(\\d{1,4}M)?(\\d{1,4}S)?|\\d{1,4}M(\\d{1,4}S)?|\\d{1,5}S)";
const label = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,60}[a-zA-Z0-9])?";
const hostname = `${label}(\\.${label}){0,2}`;
const byte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = `${byte}(\\.${byte}){3}`;
const group = "[0-9a-fA-F]{1,4}";
const ipv6 = [
  `(${group}:){7}${group}`,
  `(${group}:){1,7}:`,
  ...[6, 5, 4, 3, 2].map((count) => `(${group}:){1,${count}}(:${group}){1,${7 - count}}`),
  `${group}:(:${group}){1,6}`,
  `:(:${group}){1,7}`,
  "::",
].join("|");
const atom = "[a-zA-Z0-9_+-]{1,30}";
const hex = "[0-9a-fA-F]";
const pathCharacters = "[a-zA-Z0-9._~!$&'()*+,;=:@-]";

/**
 * String formats as patterns: all that they allow is of the format, and they allow all of it that one meets (leap
 * days are right; leap seconds, quoted e-mail names and the like are left out).
 */
export const stringFormats: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${time}$`,
  "date-time": `^${date}T${time}$`,
  duration: `^P(\\d{1,4}W|${durationDate}(${durationTime})?|${durationTime})$`,
  email: `^${atom}(\\.${atom}){0,3}@${label}(\\.${label}){1,2}$`,
  hostname: `^${hostname}$`,
  ipv4: `^${ipv4}$`,
  ipv6: `^(${ipv6})$`,
  uri: `^(https?|ftp|file|wss?)://${hostname}(:\\d{1,4})?(/${pathCharacters}{0,100}){0,20}(\\?${pathCharacters}{0,200})?(#${pathCharacters}{0,100})?$`,
  uuid: `^${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}$`,
};

/** Number formats that are ranges. */
export const integerFormats: Readonly<Record<string, readonly [min: number, max: number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  int64: [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
};
