/** Extensions. */
import * as v from 'valibot'
import { Integer, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'
import { MarketplaceEntry, Trust } from './marketplace.js'

const text = v.optional(v.string())
const texts = v.optional(v.array(v.string()))
const items = v.optional(v.array(DiagnosticItem))

/** Source of an installed copy. */
export const Provenance = v.object({
  allow_unverified: v.boolean(),
  archive_digest_sha256: text,
  catalog_entry_id: text,
  checksum_sha256: v.string(),
  checksum_verified: v.boolean(),
  installed_at: Timestamp,
  installed_by: v.string(),
  installed_from: v.string(),
  permissions: texts,
  registry_tier: v.string(),
  slug: text,
  source_url: text,
  trust: v.nullish(Trust),
  warnings: items,
})
export type Provenance = v.InferOutput<typeof Provenance>

const ShippedItem = v.object({ id: v.string(), kind: v.string(), live: v.boolean(), name: v.string() })

/** An extension and its state. */
export const Extension = v.object({
  actions: texts,
  bundles: v.optional(v.array(v.object({ description: text, name: v.string(), profiles: texts }))),
  capabilities: texts,
  daemon_running: v.boolean(),
  diagnostics: items,
  enabled: v.boolean(),
  health: text,
  health_message: text,
  /** Version in its folder, if another version runs. */
  folder_version: text,
  /** Its contents; only in replies about one extension. */
  items: v.optional(v.array(ShippedItem)),
  last_error: text,
  marketplace: v.nullish(MarketplaceEntry),
  missing_env: texts,
  name: v.string(),
  /** Folder of a developer link. */
  origin_path: text,
  pid: v.optional(Integer),
  provenance: v.nullish(Provenance),
  requires_env: texts,
  source: v.string(),
  state: v.string(),
  trust: v.nullish(Trust),
  type: v.string(),
  uptime_seconds: v.optional(Integer),
  version: v.string(),
  /** Workspace of a developer link; `*` for all. */
  workspace_id: text,
})
export type Extension = v.InferOutput<typeof Extension>

/** A part of an extension that cannot be used. */
export const ExtensionDiagnostic = v.object({ extension: v.string(), message: v.string() })
export type ExtensionDiagnostic = v.InferOutput<typeof ExtensionDiagnostic>

/** GET /api/extensions. */
export const ListExtensionsReply = v.object({
  extensions: v.array(Extension),
  diagnostics: v.optional(v.array(ExtensionDiagnostic)),
})
export type ListExtensionsReply = v.InferOutput<typeof ListExtensionsReply>

/** One extension; also the reply to enable and disable. */
export const ExtensionReply = v.object({ extension: Extension })
export type ExtensionReply = v.InferOutput<typeof ExtensionReply>

/** PUT /api/extensions/{name}. */
export const UpdateExtensionReply = v.object({
  update: v.object({
    current_version: text,
    latest_version: text,
    name: v.string(),
    path: v.string(),
    registry: v.string(),
    slug: v.string(),
    status: v.string(),
    warnings: items,
  }),
})
export type UpdateExtensionReply = v.InferOutput<typeof UpdateExtensionReply>

/** DELETE /api/extensions/{name}. */
export const RemoveExtensionReply = v.object({
  extension: v.object({ name: v.string(), path: v.string(), status: v.string(), warnings: items }),
})
export type RemoveExtensionReply = v.InferOutput<typeof RemoveExtensionReply>

/** GET /api/extensions/{name}/provenance. */
export const ProvenanceReply = v.object({ provenance: Provenance })
export type ProvenanceReply = v.InferOutput<typeof ProvenanceReply>

/** GET /api/extensions/commands. */
export const ExtensionCommandsQuery = v.strictObject({ extension: text, workspace: text })
export type ExtensionCommandsQuery = v.InferOutput<typeof ExtensionCommandsQuery>

const bound = v.nullish(v.number())

/** GET /api/extensions/commands: commands of tools, and their groups. */
export const ExtensionCommandsReply = v.object({
  commands: v.array(
    v.object({
      approval_required: v.boolean(),
      example: text,
      extension: v.string(),
      flags: v.array(
        v.object({
          default: v.optional(v.unknown()),
          enum: texts,
          field: v.string(),
          maximum: bound,
          minimum: bound,
          name: v.string(),
          nullable: v.boolean(),
          repeatable: v.boolean(),
          required: v.boolean(),
          type: v.string(),
        }),
      ),
      risk_class: v.picklist(['read', 'mutating', 'open_world', 'destructive']),
      summary: v.string(),
      tool_id: v.string(),
      verb: v.string(),
    }),
  ),
  groups: v.array(v.object({ extension: v.string(), path: v.string(), summary: v.string() })),
})
export type ExtensionCommandsReply = v.InferOutput<typeof ExtensionCommandsReply>

/** For a developer link: id, name or path of its workspace, or `*` for a link to all. Absent: the installed extension. */
export const ExtensionWorkspaceQuery = v.strictObject({ workspace: text })
export type ExtensionWorkspaceQuery = v.InferOutput<typeof ExtensionWorkspaceQuery>

/** POST /api/extensions/dev. */
export const LinkExtensionBody = v.strictObject({
  confirm_network_digest: text,
  generation_hash: v.string(),
  origin_path: v.string(),
})
export type LinkExtensionBody = v.InferOutput<typeof LinkExtensionBody>

/** POST /api/extensions/{name}/reload; without a hash any current build is accepted. */
export const ReloadExtensionBody = v.strictObject({
  confirm_network_digest: text,
  generation_hash: text,
})
export type ReloadExtensionBody = v.InferOutput<typeof ReloadExtensionBody>

/** An extension with details for its developer. */
export const DevExtension = v.object({
  bound_env_keys: texts,
  capabilities: texts,
  consecutive_failures: Integer,
  daemon_running: v.boolean(),
  dev: v.optional(v.boolean()),
  diagnostics: items,
  digest_matched: v.boolean(),
  enabled: v.boolean(),
  failure_code: text,
  format: v.string(),
  generation_hash: text,
  health: text,
  health_message: text,
  last_error: text,
  marketplace: v.nullish(MarketplaceEntry),
  missing_env: texts,
  name: v.string(),
  network_confirmation_required: v.boolean(),
  network_requirement_digest: text,
  origin_path: text,
  overrides_published: v.optional(v.boolean()),
  permissions: texts,
  pid: v.optional(Integer),
  provenance: v.nullish(v.object({ ...Provenance.entries, digest_matched: v.boolean() })),
  remote_version: text,
  requires_env: texts,
  restart_backoff_ms: Integer,
  source: v.string(),
  state: v.string(),
  trust: v.nullish(Trust),
  type: v.string(),
  update_available: v.boolean(),
  uptime_seconds: v.optional(Integer),
  version: v.string(),
  workspace_id: text,
})
export type DevExtension = v.InferOutput<typeof DevExtension>

/** Reply to link and reload. */
export const DevExtensionReply = v.object({ extension: DevExtension })
export type DevExtensionReply = v.InferOutput<typeof DevExtensionReply>

/** GET /api/extensions/{name}/inventory. */
export const ExtensionInventoryReply = v.object({
  diagnostics: items,
  enabled: v.boolean(),
  extension: v.string(),
  format: v.string(),
  items: v.array(ShippedItem),
})
export type ExtensionInventoryReply = v.InferOutput<typeof ExtensionInventoryReply>

/** GET /api/extensions/{name}/logs. */
export const ExtensionLogsQuery = v.strictObject({ workspace: text, follow: text, after: text, stream_epoch: text })
export type ExtensionLogsQuery = v.InferOutput<typeof ExtensionLogsQuery>

/** GET /api/extensions/{name}/logs. */
export const ExtensionLogsReply = v.object({
  logs: v.array(
    v.object({
      generation_hash: text,
      message: v.string(),
      sequence: Integer,
      stream_epoch: v.string(),
      timestamp: Timestamp,
    }),
  ),
  stream_epoch: v.string(),
})
export type ExtensionLogsReply = v.InferOutput<typeof ExtensionLogsReply>

/** GET /api/extensions/{name}/preview. */
export const ExtensionPreviewReply = v.object({
  agent_conflicts: v.array(v.string()),
  automation_starting: v.array(v.string()),
  changes: v.array(v.object({ change: v.string(), id: v.string(), kind: v.string(), name: v.string() })),
  extension: v.string(),
  missing_env: v.array(v.string()),
  network_confirmation_required: v.boolean(),
  network_requirement_digest: v.string(),
})
export type ExtensionPreviewReply = v.InferOutput<typeof ExtensionPreviewReply>

/** Names of secrets and whether they are set; never their values. */
export const ExtensionSecretsReply = v.object({
  bindings: v.array(v.object({ env_name: v.string(), header_name: text, mcp_server: text, stale: v.boolean() })),
  bound_env_keys: v.array(v.string()),
  declared_env: v.array(v.string()),
})
export type ExtensionSecretsReply = v.InferOutput<typeof ExtensionSecretsReply>

/** PUT /api/extensions/{name}/secrets. */
export const PutExtensionSecretsBody = v.strictObject({
  bindings: v.array(
    v.strictObject({
      env_name: v.string(),
      header_name: text,
      mcp_server: text,
      value: v.nullish(v.string()),
      vault_ref: v.nullish(v.string()),
    }),
  ),
})
export type PutExtensionSecretsBody = v.InferOutput<typeof PutExtensionSecretsBody>
