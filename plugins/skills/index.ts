import { definePlugin, maybe, Requests, Settings, surfaceOf } from '../../kernel/plugin.js'
import { Agents } from '../agents/api.js'
import { Checks, StatusMembers } from '../daemon/api.js'
import { Events } from '../events/api.js'
import { ResourceFamilies, type ResourceFamily } from '../extensions/api.js'
import { HookDeclarers, Hooks } from '../hooks/api.js'
import { McpServerSources } from '../mcp/api.js'
import { SessionBriefings, Sessions } from '../sessions/api.js'
import { Tools } from '../tools/api.js'
import { WorkspaceDetailMembers, Workspaces } from '../workspaces/api.js'
import { SkillErrors, SkillKind, SkillShadowed, Skills } from './api.js'
import { skillRoutes } from './routes.js'
import type { SkillsService } from './service.js'
import { SkillSettings } from './settings.js'

const { contribute, reconciler, tap } = surfaceOf<SkillsService>()

/** How extensions have their skills read. */
const family: ResourceFamily = {
  name: 'skills',
  kinds: [SkillKind],
  load: async extension => (await import('./skill-files.js')).readSkills(extension),
}

/** Skills: instructions for agents, from six tiers of folders and from records, and what is told of them. */
export default definePlugin({
  name: 'skills',
  version: '0.2.0',
  requires: {
    agents: maybe(Agents),
    events: Events,
    request: Requests,
    hooks: maybe(Hooks),
    settings: Settings,
    sessions: maybe(Sessions),
    tools: maybe(Tools),
    workspaces: Workspaces,
  },
  provides: Skills,
  service: () => import('./service.js').then(module => module.SkillsService),
}).surface({
  kinds: [SkillKind],
  events: [SkillShadowed],
  errors: [SkillErrors],
  settings: Object.values(SkillSettings),
  routes: skillRoutes,
  reconcilers: [reconciler({ kind: SkillKind, run: self => self.hooksChanged() })],
  taps: [SkillSettings.disabled, SkillSettings.allowedHooks].map(setting =>
    tap(
      Settings,
      settings => settings.of(setting),
      self => () => self.hooksChanged(),
    ),
  ),
  registries: [
    contribute(ResourceFamilies, () => [family]),
    contribute(McpServerSources, self => [self.servers]),
    contribute(HookDeclarers, self => [self.hooks]),
    contribute(SessionBriefings, self => [self.briefing]),
    contribute(WorkspaceDetailMembers, self => [
      { member: 'skills' as const, read: workspace => self.ofWorkspace(workspace) },
    ]),
    contribute(StatusMembers, self => [{ path: 'skills', read: ({ workspace }) => self.status(workspace) }]),
    contribute(Checks, self => [{ id: 'skills', category: 'skills', run: () => self.check() }]),
  ],
})
