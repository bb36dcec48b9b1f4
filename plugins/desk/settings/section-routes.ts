import * as v from 'valibot'
import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import { SettingsSection } from '../../../schemas/settings/sections.js'
import { ApplyOutcome } from '../../../schemas/settings.js'
import { undo } from '../changes/api.js'
import { ofSection, ofWorkspaceWriting, ofWriting, SettingsErrors } from './errors.js'
import { bodySchema, replyEntries, replySchema } from './keys.js'
import type { ScopeQuery, Section } from './section.js'
import type { Collection } from './sections/collections.js'
import type { SettingsService } from './service.js'

const route = routeOf<SettingsService>(describe('Settings'))
const reference = v.optional(v.pipe(v.string(), v.maxLength(4096)))
const scopeOf = ({ scopes = ['global'] }: Section) => v.picklist(scopes)

/** Routes that read and change a section. */
export function sectionRoutes(section: Section): Route<SettingsService>[] {
  const { name, members, flat, more, scopes, ofAgent } = section
  const path = `/api/settings/${name}`
  const config = flat ? replyEntries(members) : { config: replySchema(members) }
  const reply = v.object({
    section: SettingsSection,
    scope: scopeOf(section),
    available_scopes: v.array(scopeOf(section)),
    ...(scopes && { workspace_id: v.optional(v.string()) }),
    ...(ofAgent && { agent_name: v.optional(v.string()) }),
    ...config,
    ...more?.entries,
  } as v.ObjectEntries) as v.GenericSchema
  const query = v.object(
    scopes
      ? {
          scope: v.optional(scopeOf(section)),
          workspace_id: reference,
          ...(ofAgent && { agent_name: reference }),
        }
      : {},
  ) as v.GenericSchema<unknown, ScopeQuery>
  const body = flat ? bodySchema(members) : v.strictObject({ config: bodySchema(members) })
  return [
    route({
      method: 'GET',
      path,
      summary: `Show the settings of the section ${name}`,
      with: [throws(...ofSection)],
      ...(scopes && { query }),
      replies: { 200: reply },
      handle: async (service, { actor, query }) => ok((await service.read(section, actor, query ?? {})) as never),
    }),
    route({
      method: 'PATCH',
      path,
      summary: `Update settings of the section ${name}; omitted members keep their values`,
      with: [
        undo({ by: 'patch', of: '', ...(!flat && { in: 'config' }) }),
        throws(...(scopes ? ofWorkspaceWriting : ofWriting)),
      ],
      ...(scopes && { query }),
      body,
      privileged: true,
      replies: { 200: flat ? reply : ApplyOutcome },
      handle: async (service, { actor, query, body }) => {
        const outcome = await service.patch(
          section,
          flat ? body : (body as { config: unknown }).config,
          actor,
          query ?? {},
        )
        return ok((flat ? await service.read(section, actor, query ?? {}) : outcome) as never)
      },
    }),
  ]
}

/** Routes that read and change the entries of a collection. */
export function entryRoutes(collection: Collection): Route<SettingsService>[] {
  const { name, one, entry, body } = collection
  const path = `/api/settings/${name}` as const
  const scope = v.literal('global')
  const reply = v.object({
    collection: v.picklist(['providers', 'mcp-servers', 'sandboxes', 'hooks']),
    scope,
    available_scopes: v.array(scope),
    /** The section that contains the collection. */
    section: v.optional(v.string()),
    [name]: v.array(entry),
  })
  return [
    route({
      method: 'GET',
      path,
      summary: `List ${name} and where each is defined`,
      with: [throws(SettingsErrors.settings_unavailable)],
      replies: { 200: reply },
      handle: async (service, { actor }) => ok((await service.list(collection, actor)) as never),
    }),
    route({
      method: 'GET',
      path: `${path}/{name}`,
      summary: `Show a ${one} and where it is defined`,
      with: [throws(SettingsErrors.setting_entry_not_found, SettingsErrors.settings_unavailable)],
      replies: { 200: v.object({ [one]: entry }) },
      handle: async (service, { params, actor }) => ok((await service.entry(collection, params.name, actor)) as never),
    }),
    route({
      method: 'PUT',
      path: `${path}/{name}`,
      summary: `Create or replace a ${one}`,
      with: [undo({ by: 'put', of: one }), throws(...ofWriting, ...(collection.throws ?? []))],
      body,
      privileged: true,
      replies: { 200: ApplyOutcome },
      handle: async (service, { params, body, actor }) => ok(await service.put(collection, params.name, body, actor)),
    }),
    route({
      method: 'DELETE',
      path: `${path}/{name}`,
      summary: `Delete the entry of a ${one}`,
      with: [
        undo({ by: 'put', of: one }),
        throws(SettingsErrors.setting_entry_not_found, SettingsErrors.setting_in_use, ...ofWriting),
      ],
      privileged: true,
      replies: { 200: ApplyOutcome },
      handle: async (service, { params, actor }) => ok(await service.remove(collection, params.name, actor)),
    }),
  ]
}
