/** Support bundles: POST /api/support/bundles and the related routes. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, queryBoolean, Timestamp } from '../kernel/common.js'

/** Body of POST /api/support/bundles. */
export const CreateSupportBundleBody = v.strictObject({
  yes: v.optional(v.pipe(v.boolean(), v.description('consent: true after the contents were shown to a person')), false),
  include_status: v.nullish(v.pipe(v.boolean(), v.description('include status.json; default true'))),
})
export type CreateSupportBundleBody = v.InferOutput<typeof CreateSupportBundleBody>

/** GET /api/support/bundles/{operation_id}. */
export const SupportBundleQuery = v.object({
  wait: v.optional(v.pipe(queryBoolean(), v.description('wait until the operation has ended, at most 25 s'))),
})

/** A file of the archive, or why it is left out. */
export const SupportArtifact = v.object({
  path: v.string(),
  bytes: Integer,
  included: v.boolean(),
  truncated: v.boolean(),
  omitted_reason: v.optional(v.string()),
  redaction_version: v.optional(v.string()),
})
export type SupportArtifact = v.InferOutput<typeof SupportArtifact>

/** `manifest.json` of a bundle. */
export const SupportManifest = v.object({
  schema_version: v.string(),
  operation_id: v.string(),
  created_at: Timestamp,
  redaction_version: v.string(),
  artifact_max_bytes: Integer,
  bundle_max_bytes: Integer,
  event_summary_max_bytes: Integer,
  log_tail_max_bytes: Integer,
  artifacts: v.array(SupportArtifact),
})
export type SupportManifest = v.InferOutput<typeof SupportManifest>

export const SupportStatus = v.picklist(['pending', 'running', 'completed', 'failed'])
export type SupportStatus = v.InferOutput<typeof SupportStatus>

/** The operation that creates a bundle. */
export const SupportOperation = v.object({
  operation_id: v.string(),
  status: SupportStatus,
  status_url: v.string(),
  download_url: v.optional(v.string()),
  file_name: v.optional(v.string()),
  size_bytes: v.optional(Integer),
  failure_reason: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
  completed_at: maybeTimestamp,
  manifest: v.nullish(SupportManifest),
})
export type SupportOperation = v.InferOutput<typeof SupportOperation>

export const SupportOperationReply = v.object({ operation: SupportOperation })
export type SupportOperationReply = v.InferOutput<typeof SupportOperationReply>
