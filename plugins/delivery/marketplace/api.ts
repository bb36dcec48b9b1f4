import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event } from '../../../kernel/plugin.js'

/** A skill was installed, updated or removed. */
export const SkillManaged = event(
  'skill.managed',
  v.object({
    name: v.string(),
    slug: v.string(),
    what: v.picklist(['installed', 'updated', 'removed']),
    version: v.optional(v.string()),
    hash: v.optional(v.string()),
  }),
)

export const MarketplaceErrors = defineErrors({
  marketplace_not_configured: {
    status: 400,
    message: 'no catalog is configured',
    next: command('config set', 'marketplace.catalog.base_url', placeholder('url-or-folder')),
  },
  marketplace_kind_unknown: {
    status: 404,
    message: 'use one of the kinds mcp, extension, skill and bundle',
    next: command('marketplace list', 'skill'),
  },
  marketplace_entry_not_found: {
    status: 404,
    message: 'the catalog has no such entry',
    next: command('marketplace search'),
  },
  marketplace_entry_ambiguous: {
    status: 422,
    message: 'two entries of the catalog have the same name',
    next: 'ask the maintainer of the catalog to remove one of them',
  },
  marketplace_query_invalid: { status: 400, message: 'the parameters of the query contradict each other' },
  marketplace_unavailable: {
    status: 503,
    message: 'the catalog cannot be read, and there is no earlier copy',
    next: command('marketplace refresh'),
  },
  mcp_install_invalid: { status: 400, message: 'this entry and these values do not make a valid MCP server' },
  mcp_install_values_missing: {
    status: 422,
    message: 'the server needs values that were not given',
    next: command('mcp install', placeholder('entry'), '--env', 'NAME=value'),
  },
  mcp_server_exists: { status: 409, message: 'there is an MCP server of this name already' },
  extension_author_changed: {
    status: 422,
    message: 'the extension is no longer signed by the author that you installed it from',
    next: `to accept the new author: ${command('extension remove', placeholder('name'))}; then install it again`,
  },
  extension_signature_invalid: { status: 422, message: 'the signature does not belong to this archive' },
  extension_archive_unavailable: { status: 503, message: 'the archive of the extension cannot be fetched' },
  skill_archive_unavailable: { status: 503, message: 'the archive of the skill cannot be fetched' },
  skill_checksum_mismatch: { status: 400, message: 'the archive differs from the one that the catalog describes' },
  skill_unverified: {
    status: 400,
    message: 'the catalog gives no checksum for this skill',
    next: command('config set', 'extensions.trust.allow_unverified', 'true'),
  },
  skill_signature_invalid: { status: 400, message: 'the signature does not belong to this archive' },
  skill_author_changed: {
    status: 400,
    message: 'the skill is no longer signed by the author that you installed it from',
    next: `to accept the new author: ${command('skill remove', placeholder('name'))}; then install it again`,
  },
  skill_content_refused: { status: 400, message: 'the content of the archive was refused' },
  skill_exists: {
    status: 400,
    message: 'a skill that svc did not install has the same folder',
    next: 'move its folder away',
  },
  skill_version_unknown: { status: 404, message: 'the catalog does not have this version' },
  skill_not_managed: {
    status: 404,
    message: 'no skill of this name was installed from a catalog',
    next: command('skill list'),
  },
})

/** Errors of an extension that is taken from the catalog. */
export const CURATED_ERRORS = [
  MarketplaceErrors.marketplace_not_configured,
  MarketplaceErrors.marketplace_unavailable,
  MarketplaceErrors.marketplace_entry_not_found,
  MarketplaceErrors.marketplace_entry_ambiguous,
  MarketplaceErrors.extension_archive_unavailable,
  MarketplaceErrors.extension_author_changed,
  MarketplaceErrors.extension_signature_invalid,
] as const
