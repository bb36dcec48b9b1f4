import { definePlugin, Settings, surfaceOf } from '../../../kernel/plugin.js'
import { ResourceFamilies, type ResourceFamily } from '../../delivery/extensions/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { WorkspaceDetailMembers } from '../../desk/workspaces/api.js'
import { HookDeclarers } from '../../work/hooks/api.js'
import { McpServerSources } from '../../work/mcp/api.js'
import { SessionBriefings } from '../../work/sessions/api.js'
import { SkillErrors, SkillKind, SkillShadowed, Skills } from './api.js'
import { needs } from './needs.js'
import { skillRoutes } from './routes.js'
import type { SkillsService } from './service.js'
import { SkillSettings } from './settings.js'

const { contribute, reconciler, tap } = surfaceOf<SkillsService>()

/** The family that reads skills of extensions. */
const family: ResourceFamily = {
  name: 'skills',
  kinds: [SkillKind],
  load: async extension => (await import('./skill-files.js')).readSkills(extension),
}

/** Skills: instructions for agents, from six tiers of folders and from records, with their announcement to agents. */
export default definePlugin({
  name: 'skills',
  version: '0.2.0',
  requires: needs,
  provides: Skills,
  service: () => import('./service.js').then(module => module.SkillsService),
}).surface({
  kinds: [SkillKind],
  events: [SkillShadowed],
  errors: [SkillErrors],
  settings: Object.values(SkillSettings),
  routes: skillRoutes,
  reconcilers: [reconciler({ kind: SkillKind, run: service => service.hooksChanged() })],
  taps: [SkillSettings.disabled, SkillSettings.allowedHooks].map(setting =>
    tap(
      Settings,
      settings => settings.of(setting),
      service => () => service.hooksChanged(),
    ),
  ),
  registries: [
    contribute(ResourceFamilies, () => [family]),
    contribute(McpServerSources, service => [service.servers]),
    contribute(HookDeclarers, service => [service.hooks]),
    contribute(SessionBriefings, service => [service.briefing]),
    contribute(WorkspaceDetailMembers, service => [
      { member: 'skills' as const, read: workspace => service.ofWorkspace(workspace) },
    ]),
    contribute(StatusMembers, service => [{ path: 'skills', read: ({ workspace }) => service.status(workspace) }]),
    contribute(Checks, service => [{ id: 'skills', category: 'skills', run: () => service.check() }]),
  ],
})
