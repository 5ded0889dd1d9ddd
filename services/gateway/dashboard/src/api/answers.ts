/** The answers of the gateway, by the names that its OpenAPI document gives them. */

import type { components } from "./schema";

type Schemas = components["schemas"];

export type JobLine = Schemas["JobLine"];
export type JobPage = Schemas["JobPage"];
export type JobCounts = Schemas["JobCounts"];
export type JobDetail = Schemas["JobDetail"];
export type JobWhy = Schemas["JobWhy"];
export type JobOutput = Schemas["JobOutput"];
export type Attempt = Schemas["Attempt"];
export type HistoryLine = Schemas["HistoryLine"];
export type Controlled = Schemas["Controlled"];
export type Submission = Schemas["Submission"];
export type Progress = Schemas["Progress"];
export type ProgressLine = Schemas["ProgressLine"];
export type Overview = Schemas["Overview"];
export type OutcomeLine = Schemas["OutcomeLine"];
export type WaitLine = Schemas["WaitLine"];
export type PilotEndLine = Schemas["PilotEndLine"];
export type ServiceLine = Schemas["ServiceLine"];
export type Queues = Schemas["Queues"];
export type QueueLine = Schemas["QueueLine"];
export type Sites = Schemas["Sites"];
export type SiteLine = Schemas["SiteLine"];
export type SiteDetail = Schemas["SiteDetail"];
export type Plans = Schemas["Plans"];
export type Pilots = Schemas["Pilots"];
export type PilotLine = Schemas["PilotLine"];
export type PilotDetail = Schemas["PilotDetail"];
export type Shares = Schemas["Shares"];
export type ShareLine = Schemas["ShareLine"];
export type LimitList = Schemas["LimitList"];
export type UsageReport = Schemas["UsageReport"];
export type UsageLine = Schemas["UsageLine"];
export type WhoYouAre = Schemas["WhoYouAre"];
