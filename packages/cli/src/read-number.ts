import { InvalidArgumentError } from "commander";

/** A flag's whole number. */
export function readWhole(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError("It is no whole number.");
  return Number(value);
}

/** A flag's whole number within limits, both included. */
export function wholeWithin(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = readWhole(value);
    if (number < least || number > most) throw new InvalidArgumentError(`It is not from ${least} to ${most}.`);
    return number;
  };
}

export function readNumber(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || Number.isNaN(number)) throw new InvalidArgumentError("It is no number.");
  return number;
}
