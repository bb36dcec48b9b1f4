import { definePlugin, type EventType, type Plugin, surfaceOf } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import { Automation, type AutomationApi, RunEnded, RunStarted } from '../../automation/api.js'
import { Events } from '../../events/api.js'
import { Sessions } from '../../sessions/api.js'
import { TaskEvents, Tasks } from '../../tasks/api.js'
import { type ToolCallEnd, type ToolCallWish, Tools } from '../../tools/api.js'
import { happeningEvents, LayoutApplied, WindowManager } from '../../window-manager/api.js'
import { Hooks, type HooksApi } from '../api.js'
import { namespaceOf } from '../told.js'
import type { Self, WithSessions } from './self.js'

const version = '0.1.0'
const { tap } = surfaceOf<Self>()
const { tap: tapFires } = surfaceOf<Self & { readonly needs: { readonly automation: AutomationApi } }>()
const { tap: tapWith } = surfaceOf<WithSessions>()

const automation = definePlugin({
  name: 'hooks-automation',
  version,
  requires: { hooks: Hooks, automation: Automation, events: Events },
}).surface({
  taps: [
    tap(
      Automation,
      service => service.prompting,
      ({ needs }) =>
        async ({ prompt }, fire) => {
          const event = fire.triggerId === undefined ? 'automation.job.pre_fire' : 'automation.trigger.pre_fire'
          if (!needs.hooks.has(event)) return undefined
          const { runId, agentName, workspaceId, attempt, jobId, jobName, triggerId, triggerName, cause } = fire
          const place = workspaceId === undefined ? {} : { workspaceId }
          const about =
            jobId === undefined
              ? { trigger_id: triggerId, trigger_name: triggerName }
              : { job_id: jobId, job_name: jobName }
          const told = {
            run_id: runId,
            agent_name: agentName,
            workspace_id: workspaceId ?? '',
            attempt,
            ...about,
            prompt,
          }
          const { deny, payload } = await needs.hooks.dispatch(event, { ...place, cause }, told)
          return deny === undefined ? { prompt: String(payload.prompt) } : { prompt, deny }
        },
    ),
    tapFires(
      Hooks,
      hooks => hooks.completed,
      ({ needs }) =>
        (t, run) => {
          needs.automation.hookCompleted(t, run)
          return undefined
        },
    ),
    tapFires(
      Hooks,
      hooks => hooks.asking,
      ({ needs }) =>
        async request => {
          await needs.automation.hookAsks(request)
          return undefined
        },
    ),
    tapFires(
      Events,
      events => events.of(RunStarted),
      ({ needs }) =>
        event =>
          announceRun(
            needs,
            event.payload.trigger_id === undefined ? 'automation.job.post_fire' : 'automation.trigger.post_fire',
            event,
          ),
    ),
    tapFires(
      Events,
      events => events.of(RunEnded),
      ({ needs }) =>
        event => {
          const { status } = event.payload
          if (status === 'completed' || status === 'failed') announceRun(needs, `automation.run.${status}`, event)
        },
    ),
  ],
})

/** Notifies the hooks of the workspace of a run; the payload names its agent. */
function announceRun(
  { hooks, automation }: { readonly hooks: HooksApi; readonly automation: AutomationApi },
  event: HookEvent,
  { id, payload }: { readonly id: string; readonly payload: { readonly id: string } },
): void {
  if (!hooks.has(event)) return
  const { agentName = '', workspaceId, willRetry = false } = automation.about(payload.id) ?? {}
  const retry = event === 'automation.run.failed' ? { will_retry: willRetry } : {}
  hooks.announce(event, workspaceId, { agent_name: agentName, ...payload, ...retry }, id)
}

const windowManager = definePlugin({
  name: 'hooks-window-manager',
  version,
  requires: { hooks: Hooks, windows: WindowManager, events: Events },
}).surface({
  taps: [LayoutApplied, ...Object.values(happeningEvents)].map(type =>
    tap(
      Events,
      events => events.of(type as EventType<{ readonly workspace_id: string }>),
      ({ needs }) =>
        ({ payload }) =>
          needs.hooks.announce(type.name as HookEvent, payload.workspace_id, payload),
    ),
  ),
})

/** Payload members of a tool call. */
const toolOf = ({ toolId, risk, input }: ToolCallWish | ToolCallEnd) => ({
  ...{ tool_name: toolId, tool_id: toolId, tool_namespace: namespaceOf(toolId), tool_read_only: risk === 'read' },
  ...{ title: toolId, input },
})

const tools = definePlugin({
  name: 'hooks-tools',
  version,
  requires: { hooks: Hooks, tools: Tools, sessions: Sessions },
}).surface({
  taps: [
    tapWith(
      Tools,
      service => service.calling,
      ({ needs: { hooks, sessions } }) =>
        async wish => {
          const { place } = wish
          const session = place.sessionId === undefined ? undefined : sessions.get(place.sessionId)
          const whom = place.workspaceId === undefined ? {} : { workspaceId: place.workspaceId }
          const done = session
            ? await hooks.ask('tool.pre_call', session, toolOf(wish))
            : await hooks.dispatch('tool.pre_call', whom, toolOf(wish))
          if (!done) return undefined
          if (done.deny !== undefined) return { ...wish, deny: done.deny }
          return { ...wish, input: done.payload.input as typeof wish.input }
        },
    ),
    tapWith(
      Tools,
      service => service.called,
      ({ needs: { hooks, sessions } }) =>
        call => {
          const { place, ms, isError } = call
          const event = isError ? 'tool.post_error' : 'tool.post_call'
          const session = place.sessionId === undefined ? undefined : sessions.get(place.sessionId)
          const told = { ...toolOf(call), duration_ms: ms }
          if (session) hooks.tell(event, session, told)
          else hooks.announce(event, place.workspaceId, told)
        },
    ),
  ],
})

/** Hook events by the logged event that emits them. */
export const OF_TASKS = {
  'task.block.created': 'task.blocked',
  'task.block.cleared': 'task.unblocked',
  'task.needs_attention': 'task.needs_attention',
  'task.recovered': 'task.recovered',
  'task.status_changed': 'task.status_changed',
  'task.run_enqueued': 'task.run.enqueued',
  'task.run_claimed': 'task.run.post_claim',
  'task.run_lease_extended': 'task.run.lease_extended',
  'task.run_lease_expired': 'task.run.lease_expired',
  'task.run_recovered': 'task.run.lease_recovered',
  'task.run_released': 'task.run.released',
  'task.run_completed': 'task.run.completed',
  'task.run_failed': 'task.run.failed',
} as const satisfies Readonly<Record<string, HookEvent>>

/** Taps on logged task events; without the tasks plugin there are none. */
const tasks = definePlugin({
  name: 'hooks-tasks',
  version,
  requires: { hooks: Hooks, events: Events },
}).surface({
  taps: (Object.keys(OF_TASKS) as (keyof typeof OF_TASKS)[]).map(name =>
    tap(
      Events,
      events => events.of(TaskEvents[name]),
      ({ needs }) =>
        ({ scope, payload }) =>
          needs.hooks.announce(OF_TASKS[name], scope, payload),
    ),
  ),
})

const claims = definePlugin({
  name: 'hooks-claims',
  version,
  requires: { hooks: Hooks, tasks: Tasks },
}).surface({
  taps: [
    tap(
      Tasks,
      service => service.preClaim,
      ({ needs }) =>
        async (wish, session) => {
          const { capabilities, priorityMin, runId } = wish
          const told = { capabilities, priority_min: priorityMin, ...(runId === undefined ? {} : { run_id: runId }) }
          const done = await needs.hooks.ask('task.run.pre_claim', session, told)
          if (!done) return undefined
          if (done.deny !== undefined) return { ...wish, deny: done.deny }
          const { capabilities: able, priority_min: least } = done.payload as typeof told
          return { ...wish, capabilities: able, priorityMin: least }
        },
    ),
  ],
})

/** Taps on automation, window manager, tools and tasks, one plugin each. */
export const workPoints: readonly Plugin[] = [automation, windowManager, tools, tasks, claims]
