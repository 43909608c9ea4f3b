export { type ConformanceService, type ConformanceServiceOptions, createConformanceService } from "./service.ts";
