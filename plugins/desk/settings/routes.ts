import { cli, columnsOf, describe, show, throws, tool, withTable } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf, streamed } from '../../../kernel/plugin.js'
import { JsonMap } from '../../../schemas/kernel/common.js'
import {
  ApplyUpdateBody,
  ApplyUpdateReply,
  CancelUpdateReply,
  UpdateStateReply,
} from '../../../schemas/settings/sections.js'
import {
  ApplyOutcome,
  KeyQuery,
  ListApplyQuery,
  ListApplyReply,
  ListKeysQuery,
  ListKeysReply,
  PatchKeysBody,
  SettingKey,
  type SettingLayer,
  ValidateSettingsBody,
  ValidateSettingsReply,
} from '../../../schemas/settings.js'
import { agentRequest } from '../../agents/agents/api.js'
import { type Undo, undo } from '../changes/api.js'
import { REFERENCE_ERRORS } from '../workspaces/api.js'
import { AGENT_FIELDS, writtenBefore } from './agent-fields.js'
import { ofWorkspaceWriting, SettingsErrors } from './errors.js'
import { entryRoutes, sectionRoutes } from './section-routes.js'
import { collections } from './sections/collections.js'
import { sections } from './sections/sections.js'
import type { SettingsService } from './service.js'

const route = routeOf<SettingsService>(describe('Settings'))

/** Undo of changed keys, by their former values in the file. */
const ofKeys: Undo = {
  by: 'custom',
  compares: ['value', 'source', ...Object.values(AGENT_FIELDS).map(field => `agent.${field}`)],
  reads: ({ path, body }) => {
    const { changes, workspace_id: id, agent_name: agent, target = '' } = body as PatchKeysBody
    if (target.endsWith('-agent-file')) return [agentRequest(agent ?? '', id)]
    const query = id === undefined ? '' : `?workspace_id=${encodeURIComponent(id)}`
    return changes.map(({ key, name }) => `${path}/${encodeURIComponent(name ? `${key}.${name}` : key)}${query}`)
  },
  request: ({ path, body, before }) => {
    const { changes, dry_run: _, ...where } = body as PatchKeysBody
    if (where.target?.endsWith('-agent-file'))
      return { method: 'PATCH', path, body: { ...where, changes: writtenBefore(changes, Object(before).agent) } }
    const layer = where.target === 'workspace-config' ? 'overlay' : 'file'
    const keys = (changes.length === 1 ? [before] : (before as unknown[])) as (SettingKey | null | undefined)[]
    return {
      method: 'PATCH',
      path,
      body: {
        ...where,
        changes: changes.map(({ value: _value, ...change }, n) => {
          const was = keys[n]
          return was?.source === layer ? { ...change, value: was.value } : change
        }),
      },
    }
  },
}

const NO_UPDATES = 'this build does not update itself; install another version with the tool that installed this one'

export const routes: readonly Route<SettingsService>[] = [
  ...sections.flatMap(sectionRoutes),
  ...collections.flatMap(entryRoutes),
  route({
    method: 'GET',
    path: '/api/settings/apply',
    summary: 'List changes of settings, newest first',
    query: ListApplyQuery,
    replies: { 200: ListApplyReply },
    with: [
      cli('config apply-history', {
        view: show(
          ListApplyReply,
          'entries',
          [
            { of: 'created_at~ago', header: 'When' },
            'status',
            'keys~list',
            'lifecycle',
            { of: 'next_action', header: 'Next' },
            'actor',
            'generation',
          ],
          { empty: 'no changes; make one: svc config set <key> <value>' },
        ),
      }),
      tool('config_apply_history', ['config']),
    ],
    handle: (service, { query }) => ok({ entries: service.writer.log.list(query) }),
  }),
  route({
    method: 'POST',
    path: '/api/settings/reload',
    with: [
      undo({ by: 'never', why: 'a reload applies the current file; change the file and reload again' }),
      tool('config_reload', ['config']),
      throws(SettingsErrors.config_reload_invalid),
    ],
    summary: 'Reload config.json',
    privileged: true,
    replies: { 200: ApplyOutcome },
    handle: async (service, { actor }) => ok(await service.writer.reload(actor)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/keys',
    summary: 'List configuration keys and their values',
    query: ListKeysQuery,
    replies: { 200: ListKeysReply },
    with: [
      cli('config list', {
        options: { workspace_id: 'workspace' },
        view: show(ListKeysReply, 'keys', ['key', 'source', 'value', 'pending'], {
          empty: 'no matching keys; list all: svc config list',
        }),
      }),
      tool('config_list', ['config']),
      throws(...REFERENCE_ERRORS),
    ],
    handle: async (service, { query }) => ok(await service.keys.list(query)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/keys/{key}',
    summary: 'Show a configuration key and where its value comes from',
    query: KeyQuery,
    replies: { 200: SettingKey },
    with: [
      cli('config show', {
        options: { workspace_id: 'workspace' },
        view: withTable(
          show(SettingKey, '', [
            'key',
            'value',
            'default',
            'source',
            'lifecycle',
            'pending',
            'section',
            { of: 'description', header: 'Meaning' },
          ]),
          'layers',
          columnsOf<SettingLayer>()(['layer', 'where', 'value']),
        ),
      }),
      tool('config_get', ['config']),
      throws(SettingsErrors.setting_not_found, ...REFERENCE_ERRORS),
    ],
    handle: async (service, { params, query }) => ok(await service.keys.one(params.key, query)),
  }),
  route({
    method: 'PATCH',
    path: '/api/settings/keys',
    with: [undo(ofKeys), tool('config_set', ['config']), throws(...ofWorkspaceWriting)],
    summary: 'Update configuration keys in one file atomically',
    body: PatchKeysBody,
    privileged: true,
    replies: { 200: ApplyOutcome },
    handle: async (service, { body, actor }) => ok(await service.patchKeys(body, actor)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/check',
    with: [tool('config_check', ['config'])],
    summary: 'Check config.json',
    replies: { 200: ValidateSettingsReply },
    handle: async service => ok(await service.keys.check()),
  }),
  route({
    method: 'POST',
    path: '/api/settings/validate',
    audited: false,
    summary: 'Check a text as config.json, without changing anything',
    body: ValidateSettingsBody,
    bodyLimit: 2 * 1024 * 1024,
    replies: { 200: ValidateSettingsReply },
    handle: (service, { body }) => ok(service.keys.validate(body.text)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/observability/log-tail',
    summary: 'Follow the log of the daemon',
    contentType: 'text/event-stream',
    replies: { 200: JsonMap },
    frames: JsonMap,
    handle: (service, { signal }) => streamed(service.tail(signal)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/update',
    summary: 'Show whether a newer version is available',
    replies: { 200: UpdateStateReply },
    handle: service =>
      ok({
        available: false,
        checked_at: null,
        current_version: service.version,
        install_method: 'package',
        managed: false,
        recommendation: NO_UPDATES,
        status: 'unsupported',
        supported: false,
      }),
  }),
  route({
    method: 'POST',
    path: '/api/settings/update/apply',
    with: [undo({ by: 'never', why: 'the former version is installed by its package manager' })],
    summary: 'Install a newer version',
    body: ApplyUpdateBody,
    privileged: true,
    replies: { 200: ApplyUpdateReply },
    handle: (_, { body }) => ok({ message: NO_UPDATES, status: 'blocked', target: body.target }),
  }),
  route({
    method: 'POST',
    path: '/api/settings/update/cancel',
    with: [undo({ by: 'never', why: 'start the installation again if needed' })],
    summary: 'Cancel the installation of a newer version',
    privileged: true,
    replies: { 200: CancelUpdateReply },
    handle: () => ok({ message: `no update is under way: ${NO_UPDATES}`, status: 'unsupported' as const }),
  }),
]
