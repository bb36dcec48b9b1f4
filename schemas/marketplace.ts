/** What comes from a marketplace. */
import * as v from 'valibot'
import { Integer, Timestamp } from './kernel/common.js'
import { DiagnosticItem } from './kernel/diagnostic.js'

const text = v.optional(v.string())

/** Why something from outside was let in. */
export const Trust = v.object({
  allow_unverified: v.boolean(),
  checksum_verified: v.boolean(),
  decision: v.string(),
  registry_tier: v.string(),
  warnings: v.optional(v.array(DiagnosticItem)),
})
export type Trust = v.InferOutput<typeof Trust>

/** What a marketplace says of an entry. */
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
  kind: v.picklist(['mcp', 'extension', 'skill']),
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
