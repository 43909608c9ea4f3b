/** Import directions (ARCHITECTURE.md, "Packages and rooms"). */
const rule = (name, from, to, extra = {}) => ({
  name,
  severity: "error",
  from: { path: from, ...extra.from },
  to: { path: to, ...extra.to },
});

const tests = "\\.(test|suite)\\.ts$|/testing/";

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "no-orphans",
      severity: "error",
      from: { orphan: true, pathNot: "\\.test\\.ts$|/index\\.ts$|/bin/" },
      to: {},
    },
    { name: "everything-resolves", severity: "error", from: {}, to: { couldNotResolve: true } },
    rule("core-knows-nobody", "^packages/core/", "^packages/(?!core/)"),
    rule("client-knows-nobody", "^packages/client/", "^packages/(?!client/)"),
    rule("nnrp-knows-nobody", "^packages/nnrp/", "^packages/(?!nnrp/)"),
    rule(
      "nnrp-codec-and-session-are-pure",
      "^packages/nnrp/src/(codec|session)/",
      "^packages/nnrp/src/(node|browser)/",
    ),
    rule("profile-knows-nnrp", "^packages/profile/", "^packages/(?!(profile|nnrp)/)"),
    rule("server-knows-core-and-nnrp", "^packages/server/", "^packages/(?!(server|core|nnrp|profile|client)/)"),
    // The service is a client of its neighbours in two rooms: one runs their models, the other finds them by mDNS,
    // which the client can do too, so that the code of it stands there once.
    rule("only-two-rooms-know-the-client", "^packages/server/", "^packages/client/", {
      from: { pathNot: "^packages/server/src/(backends/lmsp|discovery/network)/" },
    }),
    rule("cli-uses-server-and-client", "^packages/cli/", "^packages/core/"),
    rule("pure-code-no-node", "^packages/(core|client|profile|nnrp)/", "", {
      from: { pathNot: `${tests}|^packages/(nnrp|client)/src/node/` },
      to: { dependencyTypes: ["core"] },
    }),
    rule(
      "door-never-backend",
      "^packages/server/src/doors/",
      "^packages/server/src/(backends|discovery|model-files|http)/",
    ),
    rule(
      "backend-never-door",
      "^packages/server/src/backends/",
      "^packages/server/src/(doors|discovery|http|model-files)/",
    ),
    rule("discovery-knows-nobody", "^packages/server/src/discovery/", "^packages/(?!server/src/discovery/|client/)"),
    rule("client-for-browsers-is-pure", "^packages/client/src/(?!node/)", "^packages/client/src/node/"),
    rule(
      "rooms-do-not-share-walls",
      "^packages/server/src/(doors|backends)/([^/]+)/",
      "^packages/server/src/$1/(?!$2/|shared/)",
    ),
    rule(
      "only-the-nnrp-rooms-know-nnrp",
      "^packages/server/src/(doors|backends)/(?!nnrp/)",
      "^packages/(nnrp|profile)/",
    ),
    rule(
      "nnrp-door-knows-its-part",
      "^packages/server/src/doors/nnrp/",
      "^packages/(?!core/|nnrp/|profile/|server/src/doors/(nnrp|shared)/)",
    ),
    rule("shared-knows-no-door", "^packages/server/src/doors/shared/", "^packages/server/src/doors/(?!shared/)"),
    rule(
      "only-the-root-knows-all",
      "^packages/server/src/(?!(server|index)\\.ts|[\\w-]+\\.test\\.ts)",
      "^packages/server/src/server\\.ts$",
    ),
    rule(
      "one-place-per-native-module",
      "^packages/(?!server/src/backends/embedded/)",
      "(^|node_modules/)node-llama-cpp",
    ),
    rule("product-never-tests", "^packages/[^/]+/src/", "/testing/", { from: { pathNot: tests }, to: {} }),
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)dist/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@plenum/source", "types", "import", "default"],
      extensions: [".ts", ".mjs", ".js", ".d.ts"],
    },
    moduleSystems: ["es6"],
  },
};
