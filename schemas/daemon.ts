/** The daemon: status, identity, doctor, drain. */
import * as v from 'valibot'
import { DiskHealth, StatusHealth } from './daemon/health.js'
import {
  SchemaStream,
  StatusAttention,
  StatusAutomation,
  StatusBridges,
  StatusConfig,
  StatusDaemon,
  StatusLogTail,
  StatusMcpServer,
  StatusMemory,
  StatusProvider,
  StatusSessions,
  StatusSkills,
  StatusTasks,
  SubprocessHealth,
} from './daemon/status.js'
import { CountMap, Integer, queryBoolean, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'

export * from './daemon/health.js'
export * from './daemon/plugins.js'
export * from './daemon/status.js'

/** GET /api/status; a workspace limits the skill diagnostics to it. */
export const StatusQuery = v.object({
  workspace_id: v.optional(v.string()),
  workspace: v.optional(v.string()),
})
export type StatusQuery = v.InferOutput<typeof StatusQuery>

/** GET /api/status: the members of an absent plugin are empty, with status `unavailable`. */
export const StatusReply = v.object({
  schema_version: v.string(),
  generated_at: Timestamp,
  daemon: StatusDaemon,
  sessions: StatusSessions,
  subprocess_health: SubprocessHealth,
  health: StatusHealth,
  memory: StatusMemory,
  automation: StatusAutomation,
  attention: v.optional(StatusAttention),
  tasks: StatusTasks,
  bridges: StatusBridges,
  providers: v.optional(v.array(StatusProvider)),
  mcp_servers: v.optional(v.array(StatusMcpServer)),
  skills: StatusSkills,
  config: StatusConfig,
  log_tail: StatusLogTail,
})
export type StatusReply = v.InferOutput<typeof StatusReply>

/** Identity of the daemon. */
export const DaemonIdentity = v.object({
  http_host: v.string(),
  /** Why TCP is not served; absent if it is. */
  http_off: v.optional(v.string()),
  http_port: Integer,
  /** TCP accepts only TLS. */
  http_tls: v.optional(v.boolean()),
  pid: Integer,
  started_at: Timestamp,
  user_home_dir: v.string(),
  version: v.string(),
})
export type DaemonIdentity = v.InferOutput<typeof DaemonIdentity>

/** GET /api/status/identity, cheap enough for frequent polling. */
export const IdentityReply = v.object({ daemon: DaemonIdentity, schema_version: v.string() })
export type IdentityReply = v.InferOutput<typeof IdentityReply>

/** GET /api/doctor: ids or categories, separated by commas; `quiet` omits passed checks. */
export const DoctorQuery = v.object({
  only: v.optional(v.string()),
  exclude: v.optional(v.string()),
  quiet: v.optional(queryBoolean()),
  probe: v.optional(
    v.pipe(
      queryBoolean(),
      v.description('also start what a session would start, such as each MCP server; takes a minute'),
    ),
  ),
})
export type DoctorQuery = v.InferOutput<typeof DoctorQuery>

/** Counts of findings. */
export const DoctorSummary = v.object({ counts_by_severity: CountMap, total: Integer })
export type DoctorSummary = v.InferOutput<typeof DoctorSummary>

/** GET /api/doctor. */
export const DoctorReply = v.object({
  duration_ms: Integer,
  generated_at: Timestamp,
  items: v.array(DiagnosticItem),
  schema_version: v.string(),
  status: v.string(),
  summary: DoctorSummary,
})
export type DoctorReply = v.InferOutput<typeof DoctorReply>

/** Whether the daemon accepts new work. */
export const AdmissionState = v.picklist(['active', 'draining'])
export type AdmissionState = v.InferOutput<typeof AdmissionState>

/** POST /api/drain and /api/undrain. */
export const DrainReply = v.object({ state: AdmissionState })
export type DrainReply = v.InferOutput<typeof DrainReply>

/** GET /api/db/status: files of the catalog, and counters since it was opened. */
export const DbStatusReply = v.object({
  status: v.picklist(['ok', 'failed']),
  /** The fatal error of a failed catalog. */
  error: v.optional(v.string()),
  path: v.string(),
  bytes: Integer,
  /** Bytes of the log that the next checkpoint moves into the database. */
  wal_bytes: Integer,
  transactions: Integer,
  syncs: Integer,
  disk: DiskHealth,
  schema_streams: v.array(SchemaStream),
})
export type DbStatusReply = v.InferOutput<typeof DbStatusReply>

/** POST /api/db/checkpoint: bytes of the log that were moved into the database. */
export const DbCheckpointReply = v.object({ moved_bytes: Integer, bytes: Integer })
export type DbCheckpointReply = v.InferOutput<typeof DbCheckpointReply>

/** GET /api/db/size: disk usage of the home, the largest items first. */
export const DbSizeReply = v.object({
  database_bytes: Integer,
  /** Bytes of unused pages in the database. */
  free_bytes: Integer,
  home_bytes: Integer,
  /** False if the home has too many files to count. */
  complete: v.boolean(),
  items: v.array(
    v.object({
      kind: v.picklist(['table', 'free', 'folder', 'file']),
      /** Table, folder or file. */
      name: v.string(),
      /** Plugin that owns a table. */
      owner: v.optional(v.string()),
      /** Rows, pages or files. */
      entries: Integer,
      /** A table's bytes include its indexes: its share of the pages, estimated from the sizes of its values. */
      bytes: Integer,
    }),
  ),
})
export type DbSizeReply = v.InferOutput<typeof DbSizeReply>

/** GET /api/db/verify, and the result of `svc db verify` on a stopped home. */
export const DbVerifyReply = v.object({
  status: v.picklist(['ok', 'damaged']),
  checked: v.array(
    v.object({
      kind: v.picklist(['database', 'table', 'journal']),
      /** File, table or folder. */
      name: v.string(),
      /** Readable rows or records. */
      entries: Integer,
      problems: v.array(v.string()),
    }),
  ),
})
export type DbVerifyReply = v.InferOutput<typeof DbVerifyReply>

/** GET /api/openapi.json: the OpenAPI document of all current routes. */
export const OpenApiReply = v.looseObject({ openapi: v.string() })
export type OpenApiReply = v.InferOutput<typeof OpenApiReply>
