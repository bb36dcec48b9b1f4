import { definePlugin, Settings, surfaceOf } from '../../../kernel/plugin.js'
import { Checks } from '../../desk/daemon/api.js'
import { HealthTimings, SessionBriefings, Sessions } from '../../work/sessions/api.js'
import { AgentHeartbeatKind, AgentSoulKind, SidecarChanged, SidecarErrors, Sidecars, SoulRefreshed } from './api.js'
import { needs } from './needs.js'
import { refreshTable } from './persona.js'
import { placeColumn, revisionTable } from './revisions.js'
import { sidecarRoutes } from './routes.js'
import type { SidecarsService } from './service.js'
import { HeartbeatSetting, SoulSetting } from './settings.js'

const { contribute, tap } = surfaceOf<SidecarsService>()

const name = { name: 'name', summary: 'name of an agent' }
const workspace = {
  name: 'workspace',
  type: 'workspace',
  summary: 'id, name or path; default: SVC_WORKSPACE, else the workspace of this folder, else none (global)',
} as const
const everywhere = {
  name: 'global',
  type: 'boolean',
  summary: 'use the global agent even inside a workspace',
} as const
const file = { name: 'file', type: 'text', summary: 'file with the text; - reads standard input' } as const
const digest = {
  name: 'expected-digest',
  type: 'text',
  summary: 'fail if the file has changed since this digest',
} as const

type Verb = 'Inspect' | 'Validate' | 'Write' | 'Remove' | 'History' | 'Rollback'

/** The commands of one sidecar. */
function commandsOf(which: 'soul' | 'heartbeat', title: string, fileName: string) {
  const load = (verb: Verb) => () => import('./commands.js').then(module => ({ run: module[`${which}${verb}`] }))
  const at = (verb: string) => `agent ${which} ${verb}`
  return [
    {
      path: at('inspect'),
      summary: `Show the ${title} of an agent and what is wrong with it`,
      args: [name],
      options: [workspace, everywhere],
      load: load('Inspect'),
    },
    {
      path: at('validate'),
      summary: `Check a ${fileName} text without saving it; without --file, the stored text`,
      args: [name],
      options: [file, workspace, everywhere],
      load: load('Validate'),
    },
    {
      path: at('write'),
      summary: `Write ${fileName}`,
      args: [name],
      options: [file, digest, workspace, everywhere],
      load: load('Write'),
    },
    {
      path: at('delete'),
      summary: `Remove ${fileName}; the history keeps it`,
      args: [name],
      options: [digest, workspace, everywhere],
      load: load('Remove'),
    },
    {
      path: at('history'),
      summary: `List changes of ${fileName}, the newest first`,
      args: [name],
      options: [
        { name: 'limit', type: 'integer', summary: 'number of changes; at most 100, default 20' },
        { name: 'cursor', type: 'text', summary: 'next_cursor of the previous page' },
        workspace,
        everywhere,
      ],
      load: load('History'),
    },
    {
      path: at('rollback'),
      summary: `Write ${fileName} as of an earlier revision`,
      args: [name, { name: 'revision', summary: `an id of svc agent ${which} history` }],
      options: [digest, workspace, everywhere],
      load: load('Rollback'),
    },
  ] as const
}

export default definePlugin({
  name: 'sidecars',
  version: '0.1.0',
  requires: needs,
  provides: Sidecars,
  service: () => import('./service.js').then(module => module.SidecarsService),
}).surface({
  kinds: [AgentSoulKind, AgentHeartbeatKind],
  events: [SidecarChanged, SoulRefreshed],
  errors: [SidecarErrors],
  settings: [SoulSetting, HeartbeatSetting],
  taps: [
    tap(
      Settings,
      settings => settings.of(HeartbeatSetting),
      service => config => void service.configured.call(config),
    ),
  ],
  tables: [
    { id: '001-revision', sql: revisionTable },
    { id: '002-refresh', sql: refreshTable },
    { id: '003-place', sql: placeColumn },
  ],
  owned: [{ by: Sessions, table: 'sidecars_refresh', column: 'session_id' }],
  commands: [
    ...commandsOf('soul', 'persona', 'SOUL.md'),
    ...commandsOf('heartbeat', 'heartbeat policy', 'HEARTBEAT.md'),
    {
      path: 'session soul refresh',
      summary: 'Reload SOUL.md; it is used from the next prompt on',
      args: [{ name: 'session_id', summary: 'id of a session without a running turn' }],
      options: [digest],
      load: () => import('./commands.js').then(module => ({ run: module.soulRefresh })),
    },
  ],
  routes: sidecarRoutes,
  registries: [
    contribute(Checks, service => [{ id: 'sidecars', category: 'agents', run: signal => service.check(signal) }]),
    contribute(SessionBriefings, service => [service.persona]),
    contribute(HealthTimings, service => [
      {
        staleAfterMs: () => service.heartbeatConfig.session_health_stale_after,
        tellEveryMs: () => service.heartbeatConfig.session_health_hook_min_interval,
      },
    ]),
  ],
})
