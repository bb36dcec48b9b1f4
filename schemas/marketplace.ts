/** Marketplaces: catalogs, their entries, and installations. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'
import { mapOf } from './kernel/map-of.js'
import { McpScope, McpServerView } from './settings/mcp-servers.js'
import { ApplyOutcome } from './settings.js'

const text = v.optional(v.string())

/** Why external content was trusted. */
export const Trust = v.object({
  allow_unverified: v.boolean(),
  checksum_verified: v.boolean(),
  decision: v.string(),
  registry_tier: v.string(),
  warnings: v.optional(v.array(DiagnosticItem)),
})
export type Trust = v.InferOutput<typeof Trust>

/** An entry as described by its marketplace. */
export const MarketplaceEntry = v.object({
  author: text,
  description: v.string(),
  downloads: v.nullish(Integer),
  entry_id: v.string(),
  format: text,
  install_slug: text,
  installed: v.boolean(),
  installed_name: text,
  installed_version: text,
  kind: v.picklist(['mcp', 'extension', 'skill', 'bundle']),
  manage_path: text,
  name: v.string(),
  published_at: v.nullish(Timestamp),
  source: v.string(),
  tier: text,
  transport: text,
  trust: v.nullish(Trust),
  update_available: v.boolean(),
  updated_at: v.nullish(Timestamp),
  version: text,
})
export type MarketplaceEntry = v.InferOutput<typeof MarketplaceEntry>

/** Kinds of catalog feeds. */
export const FeedKind = v.picklist(['mcp', 'extension', 'skill'])
export type FeedKind = v.InferOutput<typeof FeedKind>
export const MarketplaceKind = v.picklist([...FeedKind.options, 'bundle'])
export type MarketplaceKind = v.InferOutput<typeof MarketplaceKind>

export const RefreshQuery = v.object({ kind: v.optional(FeedKind) })
export const RefreshReply = v.object({
  kinds: v.array(
    v.object({
      kind: FeedKind,
      /** `refreshed`, `unchanged`, `partial` (some entries were left out), `failed` or `skipped` (no catalog). */
      outcome: v.string(),
      entry_count: Integer,
      stale: v.boolean(),
      error_class: v.optional(v.string()),
      error: v.optional(v.string()),
    }),
  ),
})
export type RefreshReply = v.InferOutput<typeof RefreshReply>

const words = v.optional(v.pipe(v.string(), v.maxLength(256)))
const limit = v.optional(queryInteger(1, 100))
const where = {
  scope: v.optional(v.picklist(['global', 'workspace'])),
  workspace_id: v.optional(v.pipe(v.string(), v.maxLength(4096))),
}

export const MarketplaceSearchQuery = v.object({ q: words, limit, ...where })
export type MarketplaceSearchQuery = v.InferOutput<typeof MarketplaceSearchQuery>
export const MarketplaceKindQuery = v.object({
  q: words,
  limit,
  cursor: v.optional(v.pipe(v.string(), v.maxLength(4096))),
  ...where,
})
export type MarketplaceKindQuery = v.InferOutput<typeof MarketplaceKindQuery>
export const MarketplaceEntryQuery = v.object({ installed_name: words, ...where })
export type MarketplaceEntryQuery = v.InferOutput<typeof MarketplaceEntryQuery>

export const MarketplaceKindPage = v.object({
  kind: MarketplaceKind,
  items: v.array(MarketplaceEntry),
  stale: v.boolean(),
  next_cursor: text,
  total: v.nullish(Integer),
  error: text,
  error_class: text,
})
export type MarketplaceKindPage = v.InferOutput<typeof MarketplaceKindPage>
export const MarketplaceSearchReply = v.object({ query: v.string(), kinds: v.array(MarketplaceKindPage) })
export type MarketplaceSearchReply = v.InferOutput<typeof MarketplaceSearchReply>

const texts = v.optional(v.array(v.string()))
const BundleSection = v.object({
  extension_name: v.string(),
  profiles: v.array(
    v.object({
      name: v.string(),
      description: text,
      agents: Integer,
      bridges: Integer,
      channels: Integer,
      jobs: Integer,
      layouts: Integer,
      triggers: Integer,
    }),
  ),
})
const ExtensionSection = v.object({
  artifact_url: v.string(),
  digest_sha256: v.string(),
  install_slug: v.string(),
  repository: text,
})
export const McpSection = v.object({
  transport: v.string(),
  command: text,
  args: texts,
  url: text,
  default_scope: text,
  env: v.optional(
    v.array(v.object({ name: v.string(), required: v.boolean(), secret: v.boolean(), default: text, prompt: text })),
  ),
  oauth: v.nullish(
    v.object({ client_id: v.string(), authorization_url: text, issuer_url: text, scopes: texts, token_url: text }),
  ),
})
const SkillSection = v.object({
  install_slug: v.string(),
  display_name: text,
  license: text,
  readme: text,
  repository: text,
  tags: texts,
  versions: texts,
})

export const MarketplaceDetail = v.object({
  entry: MarketplaceEntry,
  bundle: v.nullish(BundleSection),
  extension: v.nullish(ExtensionSection),
  mcp: v.nullish(McpSection),
  skill: v.nullish(SkillSection),
})
export type MarketplaceDetail = v.InferOutput<typeof MarketplaceDetail>

const slug = v.pipe(v.string(), v.minLength(1), v.maxLength(256))
export const InstallSkillBody = v.strictObject({ slug, version: v.optional(v.pipe(v.string(), v.maxLength(64))) })
export const UpdateSkillsBody = v.strictObject({
  name: v.optional(slug),
  all: v.optional(v.boolean()),
  check_only: v.optional(v.boolean()),
})
export type UpdateSkillsBody = v.InferOutput<typeof UpdateSkillsBody>
export const SkillInstallResult = v.object({
  name: v.string(),
  slug: v.string(),
  registry: v.string(),
  version: text,
  hash: v.string(),
  path: v.string(),
  status: v.string(),
})
export type SkillInstallResult = v.InferOutput<typeof SkillInstallResult>
export const SkillUpdateResult = v.object({
  name: v.string(),
  slug: v.string(),
  path: v.string(),
  status: v.string(),
  current_version: text,
  latest_version: text,
  error: text,
})
export type SkillUpdateResult = v.InferOutput<typeof SkillUpdateResult>
export const SkillRemoveResult = v.object({ name: v.string(), slug: v.string(), path: v.string(), status: v.string() })
export type SkillRemoveResult = v.InferOutput<typeof SkillRemoveResult>

/** A value, or a reference to a value in the vault. */
const Given = v.union([
  v.strictObject({ value: v.pipe(v.string(), v.maxLength(32_768)) }),
  v.strictObject({ vault_ref: v.pipe(v.string(), v.maxLength(512)) }),
])
export type Given = v.InferOutput<typeof Given>

/** POST /api/settings/mcp-servers/install. */
export const InstallMcpServerBody = v.strictObject({
  entry_id: slug,
  /** Default: the name of the entry. */
  name: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(128))),
  scope: McpScope,
  workspace_id: v.optional(v.pipe(v.string(), v.maxLength(4096))),
  values: v.nullable(
    v.strictObject({
      env: v.optional(mapOf(v.pipe(v.string(), v.maxLength(256)), Given)),
      oauth_client_secret: v.optional(Given),
    }),
  ),
})
export type InstallMcpServerBody = v.InferOutput<typeof InstallMcpServerBody>
export const InstallMcpServerReply = v.object({
  apply: ApplyOutcome,
  mcp_server: McpServerView,
  /** `authorize`: the server requires a login. */
  next_step: v.picklist(['none', 'authorize']),
  warnings: v.optional(v.array(DiagnosticItem)),
})
export type InstallMcpServerReply = v.InferOutput<typeof InstallMcpServerReply>
