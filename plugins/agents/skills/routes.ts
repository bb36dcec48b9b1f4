import { cli, columnsOf, describe, show, throws, tool, withTable } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import {
  ListSkillsReply,
  SkillContentReply,
  SkillContext,
  type SkillDiagnostic,
  SkillReply,
  SkillShadowsReply,
  SkillSwitchReply,
} from '../../../schemas/skills.js'
import { AGENT_SESSION } from '../../access/identity/api.js'
import { undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { AgentErrors } from '../agents/api.js'
import { SkillErrors } from './api.js'
import type { SkillsService } from './service.js'

const about = describe('Skills')
const route = routeOf<SkillsService>(about)
const origins = [AGENT_SESSION]
const toolsets = ['skills']
const argument = { summary: 'name of a skill' }
/** Errors of the viewer's context: a missing workspace or an invalid agent. */
const context = [...REFERENCE_ERRORS, AgentErrors.agent_not_found, AgentErrors.agent_invalid]
const ofOne = { args: [{ name: 'name', ...argument }], options: { for_agent: 'agent' } }
const here = { ...ofOne, workspace: 'workspace' }

const skill = collectionOf<SkillsService>(about)({
  path: '/api/skills',
  key: 'name',
  noun: 'skill',
  one: [SkillReply, 'skill'],
  many: [ListSkillsReply, 'skills'],
  show: ['name', { of: 'source', header: 'Tier' }, 'version', 'enabled', 'activation.active', 'description'],
  fields: [
    'name',
    'description',
    'version',
    { of: 'source', header: 'Tier' },
    { of: 'dir', header: 'Folder' },
    'enabled',
    'activation.active',
    { of: 'provenance.installed_from_extension', header: 'Extension' },
    { of: 'provenance.slug', header: 'Installed from' },
    { of: 'provenance.installed_at~time', header: 'Installed' },
  ],
  argument,
  missing: SkillErrors.skill_not_found,
})

/** State of a skill with its reasons, below its fields. */
const diagnostics = columnsOf<SkillDiagnostic>()([
  'state',
  'path',
  { of: 'verification_status', header: 'Verification' },
  { of: 'activation_reasons~list', header: 'Reasons' },
  { of: 'failure.message', header: 'Failure', below: true },
  { of: 'warnings~list', below: true },
])

/** The commands to enable and disable. */
const switches = [
  { verb: 'enable', enabled: true, summary: 'Enable a skill' },
  { verb: 'disable', enabled: false, summary: 'Disable a skill; it stays listed' },
] as const

export const skillRoutes: readonly Route<SkillsService>[] = [
  skill.list({
    summary: 'List skills, and why some are hidden or inactive',
    query: SkillContext,
    origins,
    with: [tool('skill_list', toolsets)],
    throws: context,
    cli: { workspace: 'workspace', options: ofOne.options },
    empty: 'no skills; write one: ~/.svc/skills/<name>/SKILL.md',
    problems: 'diagnostics',
    handle: (service, { query, actor }) => service.list(query, actor),
  }),
  skill.get({
    summary: 'Show a skill and where it comes from',
    query: SkillContext,
    origins,
    with: [tool('skill_info', toolsets)],
    throws: context,
    cli: { ...here, view: withTable(skill.view, 'diagnostics', diagnostics) },
    handle: async (service, { params, query, actor }) => ({ skill: await service.show(params.name, query, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/skills/{name}/content',
    summary: 'Print the instructions of a skill',
    query: SkillContext,
    origins,
    with: [
      cli('skill content', { ...here, view: { text: 'content' } }),
      tool('skill_view', toolsets),
      throws(SkillErrors.skill_not_found, SkillErrors.skill_blocked, ...context),
    ],
    replies: { 200: SkillContentReply },
    handle: async (service, { params, query, actor }) =>
      ok({ content: await service.content(params.name, query, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/skills/{name}/shadows',
    summary: 'List the skills with the same name; the first one is in use',
    query: SkillContext,
    with: [
      cli('skill shadows', {
        ...here,
        view: show(SkillShadowsReply, 'shadows', [
          'tier',
          { of: 'resolved_to_winner', header: 'Used' },
          { of: 'detected_at~ago', header: 'Since' },
          'path',
        ]),
      }),
      tool('skill_shadows', toolsets),
      throws(SkillErrors.skill_not_found, ...context),
    ],
    replies: { 200: SkillShadowsReply },
    handle: async (service, { params, query, actor }) => ok(await service.shadows(params.name, query, actor)),
  }),
  ...switches.map(({ verb, enabled, summary }) =>
    skill.action(verb, {
      summary,
      query: SkillContext,
      privileged: true,
      with: [undo({ by: 'action', verb: enabled ? 'disable' : 'enable' }), tool(`skill_${verb}`, toolsets)],
      throws: [SkillErrors.skill_switch_refused, ...context],
      cli: { ...here, view: { text: `{name} ${enabled ? 'enabled' : 'disabled'}` } },
      reply: SkillSwitchReply,
      handle: async (service, { params, query, actor }) => {
        await service.setEnabled(params.name, enabled, query, actor)
        return { ok: true }
      },
    }),
  ),
]
