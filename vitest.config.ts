import { defineConfig } from "vitest/config";

const source = { resolve: { conditions: ["@plenum/source"] }, ssr: { resolve: { conditions: ["@plenum/source"] } } };

export default defineConfig({
  test: {
    projects: [
      { ...source, test: { name: "unit", include: ["packages/*/src/**/*.test.ts"] } },
      {
        ...source,
        test: {
          name: "e2e",
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
