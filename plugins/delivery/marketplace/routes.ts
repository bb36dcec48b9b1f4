import * as v from 'valibot'
import { cli, columnsOf, describe, show, throws, tool, withTable } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import {
  InstallMcpServerBody,
  InstallMcpServerReply,
  InstallSkillBody,
  MarketplaceDetail,
  MarketplaceEntryQuery,
  MarketplaceKindPage,
  MarketplaceKindQuery,
  MarketplaceSearchQuery,
  MarketplaceSearchReply,
  RefreshQuery,
  RefreshReply,
  SkillInstallResult,
  SkillRemoveResult,
  SkillUpdateResult,
  UpdateSkillsBody,
} from '../../../schemas/marketplace.js'
import { undo } from '../../desk/changes/api.js'
import { DECLARE_ERRORS } from '../../work/mcp/api.js'
import { MarketplaceErrors } from './api.js'
import type { MarketplaceService } from './service.js'

const route = routeOf<MarketplaceService>()
const area = 'Marketplace'
const kind = { name: 'kind', summary: 'mcp, extension, skill or bundle' } as const
const columns = [
  { of: 'entry_id', header: 'ID' },
  'name',
  'version',
  'author',
  { of: 'installed_version', header: 'Installed' },
  { of: 'trust.decision', header: 'Trust' },
  'description',
] as const
const InstalledSkill = v.object({ skill: SkillInstallResult })
const UpdatedSkills = v.object({ skills: v.array(SkillUpdateResult) })
const RemovedSkill = v.object({ skill: SkillRemoveResult })

/** Errors of a catalog that cannot be read. */
const ofCatalog = [MarketplaceErrors.marketplace_not_configured, MarketplaceErrors.marketplace_unavailable] as const
const ofKind = [MarketplaceErrors.marketplace_kind_unknown, ...ofCatalog] as const
const ofEntry = [
  MarketplaceErrors.marketplace_entry_not_found,
  MarketplaceErrors.marketplace_entry_ambiguous,
  ...ofCatalog,
] as const
/** Errors of the files and the signature of a skill. */
const ofSkill = [
  MarketplaceErrors.skill_archive_unavailable,
  MarketplaceErrors.skill_author_changed,
  MarketplaceErrors.skill_checksum_mismatch,
  MarketplaceErrors.skill_content_refused,
  MarketplaceErrors.skill_exists,
  MarketplaceErrors.skill_signature_invalid,
  MarketplaceErrors.skill_unverified,
  MarketplaceErrors.skill_version_unknown,
] as const

export const marketplaceRoutes: readonly Route<MarketplaceService>[] = [
  route({
    method: 'POST',
    path: '/api/marketplace/refresh',
    audited: false,
    summary: 'Refresh the marketplace catalog',
    query: RefreshQuery,
    privileged: true,
    replies: { 200: RefreshReply },
    with: [
      describe(area),
      throws(...ofKind),
      cli('marketplace refresh', {
        view: show(RefreshReply, 'kinds', [
          'kind',
          { of: 'outcome', words: { skipped: 'no catalog' } },
          { of: 'entry_count', header: 'Entries' },
          'stale',
          { of: 'error', below: true },
        ]),
      }),
    ],
    handle: async (service, { query }) => ok(await service.refresh(query.kind)),
  }),
  route({
    method: 'GET',
    path: '/api/marketplace/search',
    with: [
      describe(area),
      tool('marketplace_search', ['marketplace']),
      throws(MarketplaceErrors.marketplace_query_invalid, ...ofKind),
    ],
    summary: 'Search the marketplace; without words, show featured entries',
    query: MarketplaceSearchQuery,
    replies: { 200: MarketplaceSearchReply },
    handle: async (service, { query }) => ok(await service.search(query)),
  }),
  route({
    method: 'GET',
    path: '/api/marketplace/{kind}',
    summary: 'List marketplace entries of one kind',
    query: MarketplaceKindQuery,
    replies: { 200: MarketplaceKindPage },
    with: [
      describe(area),
      throws(MarketplaceErrors.marketplace_query_invalid, ...ofKind),
      cli('marketplace list', {
        args: [kind, { name: 'q', in: 'query', optional: true, summary: 'words to search for' }],
        options: { workspace_id: 'workspace' },
        view: show(MarketplaceKindPage, 'items', columns, {
          empty: 'no entries; read the catalog: svc marketplace refresh',
        }),
      }),
    ],
    handle: async (service, { params, query }) => ok(await service.page(params.kind, query)),
  }),
  route({
    method: 'GET',
    path: '/api/marketplace/{kind}/{entry_id}',
    summary: 'Show a marketplace entry',
    query: MarketplaceEntryQuery,
    replies: { 200: MarketplaceDetail },
    with: [
      describe(area),
      cli('marketplace info', {
        args: [kind, { name: 'entry_id', summary: 'id of an entry' }],
        options: { workspace_id: 'workspace' },
        view: withTable(
          show(MarketplaceDetail, '', [
            'entry.name',
            'entry.description',
            'entry.version',
            'entry.author',
            { of: 'entry.installed_version', header: 'Installed' },
            { of: 'entry.trust.decision', header: 'Trust' },
            'skill.versions~list',
            'skill.license',
            { of: 'extension.artifact_url', header: 'Archive' },
            { of: 'extension.digest_sha256', header: 'SHA-256' },
            'mcp.command',
            'mcp.url',
          ]),
          'entry.trust.warnings',
          columnsOf<DiagnosticItem>()([
            'severity',
            { of: 'title', header: 'Warning' },
            { of: 'message', header: 'Meaning' },
          ]),
        ),
      }),
      tool('marketplace_info', ['marketplace']),
      throws(MarketplaceErrors.marketplace_query_invalid, MarketplaceErrors.marketplace_kind_unknown, ...ofEntry),
    ],
    handle: async (service, { params, query }) => ok(await service.detail(params.kind, params.entry_id, query)),
  }),
  route({
    method: 'POST',
    path: '/api/settings/mcp-servers/install',
    with: [
      undo({ by: 'never', why: 'remove it: svc mcp remove' }),
      describe('Settings'),
      throws(
        MarketplaceErrors.mcp_install_invalid,
        MarketplaceErrors.mcp_install_values_missing,
        MarketplaceErrors.mcp_server_exists,
        ...ofEntry,
        ...DECLARE_ERRORS,
      ),
    ],
    summary: 'Install an MCP server from the marketplace',
    body: InstallMcpServerBody,
    privileged: true,
    replies: { 200: InstallMcpServerReply },
    handle: async (service, { body, actor }) => ok(await service.servers.install(body, actor)),
  }),
  route({
    method: 'POST',
    path: '/api/skills/marketplace/install',
    summary: 'Install a skill from the marketplace',
    body: InstallSkillBody,
    privileged: true,
    replies: { 200: InstalledSkill },
    with: [
      undo({ by: 'never', why: 'remove it: svc skill remove' }),
      throws(...ofEntry, ...ofSkill),
      describe('Skills'),
      cli('skill install', {
        args: [{ name: 'slug', in: 'body', summary: 'id of an entry: svc marketplace list skill' }],
        view: show(InstalledSkill, 'skill', ['name', 'status', 'version', 'slug', { of: 'path', header: 'Folder' }]),
      }),
    ],
    handle: async (service, { body, actor }) =>
      ok({ skill: await service.skills.install(body.slug, body.version, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/skills/marketplace/update',
    summary: 'Update one installed skill or all; without arguments, list available updates',
    body: UpdateSkillsBody,
    privileged: true,
    replies: { 200: UpdatedSkills },
    with: [
      undo({ by: 'never', why: 'the former files are not kept; install the former version: svc skill install' }),
      throws(
        MarketplaceErrors.skill_not_managed,
        MarketplaceErrors.marketplace_entry_not_found,
        ...ofCatalog,
        ...ofSkill,
      ),
      describe('Skills'),
      cli('skill update', {
        args: [{ name: 'name', in: 'body', optional: true, summary: 'name of an installed skill' }],
        view: show(
          UpdatedSkills,
          'skills',
          [
            'name',
            'status',
            { of: 'current_version', header: 'Version' },
            { of: 'latest_version', header: 'Latest' },
            { of: 'error', below: true },
          ],
          { empty: 'no installed skills; find one: svc marketplace list skill' },
        ),
      }),
    ],
    handle: async (service, { body, actor }) => ok({ skills: await service.skills.update(body, actor) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/skills/marketplace/{name}',
    summary: 'Remove an installed skill and the recorded key of its author',
    privileged: true,
    essential: true,
    replies: { 200: RemovedSkill },
    with: [
      undo({ by: 'never', why: 'its files are not kept; install it again: svc skill install' }),
      throws(MarketplaceErrors.skill_not_managed),
      describe('Skills'),
      cli('skill remove', {
        args: [{ name: 'name', summary: 'name of an installed skill' }],
        view: show(RemovedSkill, 'skill', ['name', 'status', 'slug', { of: 'path', header: 'Folder' }]),
      }),
    ],
    handle: async (service, { params, actor }) => ok({ skill: await service.skills.remove(params.name, actor) }),
  }),
]
