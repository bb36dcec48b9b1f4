import { cli, describe, tool } from '../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../kernel/plugin.js'
import {
  ListSkillsReply,
  SkillContentReply,
  SkillContext,
  SkillReply,
  SkillShadowsReply,
  SkillSwitchReply,
} from '../../schemas/skills.js'
import { AGENT_SESSION } from '../identity/api.js'
import type { SkillsService } from './service.js'

const route = routeOf<SkillsService>(describe('Skills'))
const origins = [AGENT_SESSION]
const options = { for_agent: 'agent' }
const args = [{ name: 'name', summary: 'name of a skill' }] as const

/** Enabling and disabling differ in one word. */
const switches = [
  { verb: 'enable', enabled: true, summary: 'Enable a skill', done: 'enabled {name}' },
  { verb: 'disable', enabled: false, summary: 'Disable a skill; it stays listed', done: 'disabled {name}' },
] as const

export const skillRoutes: readonly Route<SkillsService>[] = [
  route({
    method: 'GET',
    path: '/api/skills',
    summary: 'List skills, and why some are hidden or inactive',
    query: SkillContext,
    origins,
    replies: { 200: ListSkillsReply },
    with: [
      cli('skill list', {
        workspace: 'workspace',
        options,
        view: {
          rows: 'skills',
          columns: [
            { header: 'NAME', path: 'name' },
            { header: 'TIER', path: 'source' },
            { header: 'VERSION', path: 'version' },
            { header: 'ENABLED', path: 'enabled' },
            { header: 'ACTIVE', path: 'activation.active' },
            { header: 'DESCRIPTION', path: 'description' },
          ],
          empty: 'no skills; write one: ~/.svc/skills/<name>/SKILL.md',
        },
      }),
      tool('skill_list', ['skills']),
    ],
    handle: async (self, { query, actor }) => ok(await self.list(query, actor)),
  }),
  route({
    method: 'GET',
    path: '/api/skills/{name}',
    summary: 'Show a skill and where it comes from',
    query: SkillContext,
    origins,
    replies: { 200: SkillReply },
    with: [
      cli('skill show', {
        args,
        workspace: 'workspace',
        options,
        view: {
          item: 'skill',
          fields: [
            { header: 'Name', path: 'name' },
            { header: 'Description', path: 'description' },
            { header: 'Version', path: 'version' },
            { header: 'Tier', path: 'source' },
            { header: 'Folder', path: 'dir' },
            { header: 'Enabled', path: 'enabled' },
            { header: 'Active', path: 'activation.active' },
            { header: 'Extension', path: 'provenance.installed_from_extension' },
            { header: 'Installed from', path: 'provenance.slug' },
            { header: 'Installed', path: 'provenance.installed_at', as: 'time' },
          ],
          table: {
            path: 'diagnostics',
            columns: [
              { header: 'STATE', path: 'state' },
              { header: 'PATH', path: 'path' },
              { header: 'VERIFICATION', path: 'verification_status' },
              { header: 'REASONS', path: 'activation_reasons', as: 'list' },
              { header: 'FAILURE', path: 'failure.message', below: true },
              { header: 'WARNINGS', path: 'warnings', as: 'list', below: true },
            ],
          },
        },
      }),
      tool('skill_info', ['skills']),
    ],
    handle: async (self, { params, query, actor }) => ok({ skill: await self.show(params.name, query, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/skills/{name}/content',
    summary: 'Print the instructions of a skill',
    query: SkillContext,
    origins,
    replies: { 200: SkillContentReply },
    with: [
      cli('skill content', { args, workspace: 'workspace', options, view: { text: 'content' } }),
      tool('skill_view', ['skills']),
    ],
    handle: async (self, { params, query, actor }) => ok({ content: await self.content(params.name, query, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/skills/{name}/shadows',
    summary: 'List the skills with the same name; the first one is in use',
    query: SkillContext,
    replies: { 200: SkillShadowsReply },
    with: [
      cli('skill shadows', {
        args,
        workspace: 'workspace',
        options,
        view: {
          rows: 'shadows',
          columns: [
            { header: 'TIER', path: 'tier' },
            { header: 'USED', path: 'resolved_to_winner' },
            { header: 'SINCE', path: 'detected_at', as: 'ago' },
            { header: 'PATH', path: 'path' },
          ],
        },
      }),
      tool('skill_shadows', ['skills']),
    ],
    handle: async (self, { params, query, actor }) => ok(await self.shadows(params.name, query, actor)),
  }),
  ...switches.map(({ verb, enabled, summary, done: _done }) =>
    route({
      method: 'POST',
      path: `/api/skills/{name}/${verb}`,
      summary,
      query: SkillContext,
      privileged: true,
      replies: { 200: SkillSwitchReply },
      with: [
        cli(`skill ${verb}`, { args, options, view: { text: `{name} ${enabled ? 'enabled' : 'disabled'}` } }),
        tool(`skill_${verb}`, ['skills']),
      ],
      handle: async (self, { params, query, actor }) => {
        await self.setEnabled(params.name, enabled, query, actor)
        return ok({ ok: true })
      },
    }),
  ),
]
