import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { AgentActivities } from '../../agents/agents/api.js'
import { ArchivedThings } from '../../desk/archives/api.js'
import { Changes } from '../../desk/changes/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { WorkspaceDetailMembers, Workspaces } from '../../desk/workspaces/api.js'
import { AuditedEvents } from '../../platform/audit/api.js'
import { WorktreeUsers } from '../worktrees/api.js'
import {
  HealthTimings,
  InboxSources,
  PermissionAnswered,
  SessionBriefings,
  SessionCreated,
  SessionErrors,
  SessionHung,
  SessionMcpServers,
  SessionParticipation,
  SessionPromptedFor,
  SessionRecovered,
  SessionRepaired,
  SessionRuns,
  SessionStopped,
  Sessions,
  SessionUnhealthy,
  WakeSources,
} from './api.js'
import { sessionSecrets } from './context.js'
import { guardUndo, guardWorkspace } from './lifecycle/catalog.js'
import { checkSessions, statusMembers } from './lifecycle/status.js'
import { needs } from './needs.js'
import { sessionRoutes } from './routes/index.js'
import type { SessionsService } from './service.js'
import { DefaultAgent, SessionSettings } from './settings.js'
import { SESSION_TABLES } from './table.js'

const { contribute, tap } = surfaceOf<SessionsService>()
export default definePlugin({
  name: 'sessions',
  version: '0.1.0',
  requires: needs,
  provides: Sessions,
  service: () => import('./service.js').then(module => module.SessionsService),
}).surface({
  declares: [
    SessionBriefings,
    SessionMcpServers,
    HealthTimings,
    WakeSources,
    InboxSources,
    SessionRuns,
    SessionParticipation,
  ],
  tables: SESSION_TABLES,
  owned: [
    {
      ...{ by: Workspaces, table: 'sessions_session', column: 'workspace_id' },
      forget: (service, { id }) => service.endings.removeAlways(`${id}`),
    },
    {
      ...{ by: Workspaces, table: 'sessions_archived_part', column: 'workspace_id' },
      forget: (service, row) => service.removeArchived(`${row.workspace_id}`, Number(row.segment)),
    },
  ],
  errors: [SessionErrors],
  events: [
    SessionCreated,
    SessionStopped,
    PermissionAnswered,
    SessionPromptedFor,
    SessionRepaired,
    SessionHung,
    SessionUnhealthy,
    SessionRecovered,
  ],
  settings: [DefaultAgent, ...Object.values(SessionSettings)],
  routes: sessionRoutes,
  registries: [
    contribute(SecretOwners, () => [sessionSecrets]),
    contribute(ArchivedThings, ({ context }) => [
      { parameter: 'session_id', prepare: (id, isRead) => context.archive.prepare(id, isRead) },
    ]),
    contribute(WorktreeUsers, ({ context }) => [{ sessionsOf: id => context.table.inWorktrees(id) }]),
    contribute(AuditedEvents, () => [SessionPromptedFor.name]),
    contribute(StatusMembers, service => statusMembers(service.context, () => service.open.all)),
    contribute(Checks, service => [
      {
        id: 'runtime.subprocess_health',
        category: 'sessions',
        run: () => checkSessions(service.context, service.open.all),
      },
    ]),
    contribute(AgentActivities, service => [service.activity]),
    contribute(WorkspaceDetailMembers, service => [
      {
        member: 'sessions' as const,
        read: ({ id }) =>
          service.context.table
            .list({ workspaceId: id, sort: 'created_at' }, 100)
            .map(row => service.wire.session(row)),
      },
    ]),
  ],
  taps: [
    tap(
      maybe(Changes),
      changes => changes.undoing,
      service => undoing => guardUndo(service.context, undoing),
    ),
    tap(
      Workspaces,
      service => service.deleting,
      service => (t, workspace) => guardWorkspace(service.context, t, workspace),
    ),
  ],
  services: [
    { name: 'prompts', run: (service, signal) => service.context.promptFiles.run(signal) },
    { name: 'archive', run: (service, signal) => service.context.archive.run(signal) },
  ],
  quiesce: [{ phase: 'sessions', run: service => service.stopAll() }],
})
