export { DeterministicBackend } from "./deterministic-backend.ts";
export { type ConformanceService, type ConformanceServiceOptions, createConformanceService } from "./service.ts";
