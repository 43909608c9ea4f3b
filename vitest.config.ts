import { defineConfig } from "vitest/config";

const source = { resolve: { conditions: ["@plenum/source"] }, ssr: { resolve: { conditions: ["@plenum/source"] } } };

/** CI's machines are shared: what fails there for want of time is run once more, and Vitest names it. */
const retry = process.env["CI"] === "true" ? 1 : 0;

export default defineConfig({
  test: {
    projects: [
      { ...source, test: { name: "unit", retry, include: ["packages/*/src/**/*.test.ts"] } },
      {
        ...source,
        test: {
          name: "e2e",
          retry,
          include: ["tests/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
      {
        ...source,
        test: {
          name: "clients",
          retry,
          include: ["tests/clients/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
      {
        ...source,
        test: {
          name: "peers",
          include: ["tests/peers/**/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
