import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { AgentActivities, Agents } from '../agents/api.js'
import { Checks, Daemon, StatusMembers } from '../daemon/api.js'
import { Events } from '../events/api.js'
import { Journals } from '../journals/api.js'
import { Processes } from '../processes/api.js'
import { Providers } from '../providers/api.js'
import { WorkspaceDeleted, WorkspaceDetailMembers, Workspaces } from '../workspaces/api.js'
import {
  HealthTimings,
  SessionBriefings,
  SessionCreated,
  SessionErrors,
  SessionHung,
  SessionRecovered,
  SessionRepaired,
  SessionStopped,
  Sessions,
  SessionUnhealthy,
  WakeSources,
} from './api.js'
import { inspectionRoutes, queueRoutes } from './detail-routes.js'
import { sessionRoutes } from './routes.js'
import type { SessionsService } from './service.js'
import { DefaultAgent, SessionSettings } from './settings.js'
import { SESSION_TABLES } from './table.js'

const { contribute, tap } = surfaceOf<SessionsService>()
const session = { name: 'session_id', summary: 'id of a session' }

export default definePlugin({
  name: 'sessions',
  version: '0.1.0',
  requires: {
    daemon: Daemon,
    events: Events,
    agents: Agents,
    providers: Providers,
    workspaces: Workspaces,
    processes: Processes,
    journals: Journals,
  },
  provides: Sessions,
  service: () => import('./service.js').then(module => module.SessionsService),
}).surface({
  declares: [SessionBriefings, HealthTimings, WakeSources],
  tables: SESSION_TABLES,
  errors: [SessionErrors],
  events: [SessionCreated, SessionStopped, SessionRepaired, SessionHung, SessionUnhealthy, SessionRecovered],
  settings: [DefaultAgent, ...Object.values(SessionSettings)],
  routes: [...sessionRoutes, ...inspectionRoutes, ...queueRoutes],
  registries: [
    contribute(StatusMembers, self => self.statusMembers()),
    contribute(Checks, self => [
      { id: 'runtime.subprocess_health', category: 'sessions', run: async () => self.checkItems() },
    ]),
    contribute(AgentActivities, self => [self.activity()]),
    contribute(WorkspaceDetailMembers, self => [
      { member: 'sessions' as const, read: workspace => self.workspaceMembers(workspace) },
    ]),
  ],
  taps: [
    tap(
      Events,
      events => events.of(WorkspaceDeleted),
      self =>
        ({ payload }) =>
          self.forgetWorkspace(payload.id),
    ),
    tap(
      Workspaces,
      service => service.deleting,
      self => (t, workspace) => self.guardWorkspace(t, workspace),
    ),
  ],
  quiesce: [{ phase: 'sessions', run: self => self.stopAll() }],
  commands: [
    {
      path: 'session new',
      summary: 'Start a session in the workspace that is meant here',
      options: [
        { name: 'agent', type: 'text', summary: 'name of an agent; default: that of the workspace' },
        {
          name: 'workspace',
          type: 'workspace',
          summary: 'id, name or path; default: SVC_WORKSPACE, else that of this folder, else this folder',
        },
        { name: 'name', type: 'text', summary: 'what to call the session' },
        { name: 'model', type: 'text', summary: 'instead of the model of the agent' },
        { name: 'prompt', type: 'text', summary: 'what to ask first' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runNew })),
    },
    {
      path: 'session events',
      summary: 'What happened in a session, line by line',
      args: [session],
      options: [
        { name: 'follow', type: 'boolean', summary: 'go on until the session stops' },
        { name: 'limit', type: 'integer', summary: 'the newest this many' },
        { name: 'type', type: 'text', summary: 'only events of this type' },
        { name: 'turn', type: 'text', summary: 'only events of this turn' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runEvents })),
    },
    {
      path: 'session history',
      summary: 'What happened in a session, turn by turn',
      args: [session],
      options: [{ name: 'limit', type: 'integer', summary: 'the newest this many events' }],
      load: () => import('./commands.js').then(module => ({ run: module.runHistory })),
    },
    {
      path: 'session transcript',
      summary: 'The conversation of a session',
      args: [session],
      options: [{ name: 'limit', type: 'integer', summary: 'the newest this many messages' }],
      load: () => import('./commands.js').then(module => ({ run: module.runTranscript })),
    },
    {
      path: 'session approve',
      summary: 'Answer what the agent of a session asks permission for',
      args: [session],
      options: [
        { name: 'reject', type: 'boolean', summary: 'say no' },
        { name: 'always', type: 'boolean', summary: 'for the rest of the session' },
        { name: 'request', type: 'text', summary: 'id of the request, when several wait' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runApprove })),
    },
    {
      path: 'session prompt',
      summary: 'Ask something and see what comes of it; questions are answered at the terminal',
      args: [session, { name: 'text', optional: true, summary: 'what to ask; - is standard input' }],
      options: [
        { name: 'no-wait', type: 'boolean', summary: 'send it and return' },
        { name: 'mode', type: 'text', summary: 'while a turn runs: queue (default), interrupt or steer' },
        { name: 'idempotency-key', type: 'text', summary: 'the same prompt with the same key is sent once' },
        { name: 'message-id', type: 'text', summary: 'id of the message, instead of one that is made' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runPrompt })),
    },
    {
      path: 'session attach',
      summary: 'Follow a session, answer its questions and type prompts',
      args: [session],
      load: () => import('./commands.js').then(module => ({ run: module.runAttach })),
    },
    {
      path: 'session wait',
      summary: 'Wait until no turn of a session runs any more',
      args: [session],
      options: [
        { name: 'until', type: 'text', summary: 'states, with commas: idle, prompting, active, stopped …' },
        { name: 'timeout', type: 'integer', summary: 'seconds; default: as long as it takes' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runWait })),
    },
    {
      path: 'session resume',
      summary: 'Start a session again that the daemon or its agent interrupted',
      args: [session],
      load: () => import('./commands.js').then(module => ({ run: module.runResume })),
    },
  ],
})
