import { definePlugin, type EventType, type Plugin, surfaceOf } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import { Automation, type AutomationApi, RunEnded, RunStarted } from '../../automation/api.js'
import { Events } from '../../events/api.js'
import { agentSessionOfEvent } from '../../identity/api.js'
import { Sessions } from '../../sessions/api.js'
import { TaskEvents, Tasks, type TasksApi } from '../../tasks/api.js'
import { type ToolCallEnd, type ToolCallWish, type ToolResult, Tools, type ToolsApi } from '../../tools/api.js'
import { happeningEvents, LayoutApplied, WindowManager } from '../../window-manager/api.js'
import { Workspaces, type WorkspacesApi } from '../../workspaces/api.js'
import { type HookPayload, Hooks, type HooksApi, HookValues, type KnownValues } from '../api.js'
import { OPERATIONS } from '../families.js'
import { namespaceOf, toolIdOf } from '../told.js'
import type { Self, WithSessions } from './self.js'

const version = '0.1.0'
const { tap } = surfaceOf<Self>()
const { tap: tapFires } = surfaceOf<Self & { readonly needs: { readonly automation: AutomationApi } }>()
const { tap: tapWith } = surfaceOf<WithSessions>()
const { contribute: contributeTools } = surfaceOf<ToolNeeds>()
const { tap: tapTasks } = surfaceOf<WithSessions & { readonly needs: { readonly tasks: TasksApi } }>()

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

/** The `self` of what knows the tools. */
interface ToolNeeds {
  readonly needs: { readonly tools: ToolsApi; readonly workspaces: WorkspacesApi }
}

/** Names of tools everywhere, and the kinds of call that agents make themselves. */
function toolValues({ tools, workspaces }: ToolNeeds['needs']): KnownValues[] {
  const ids = async () => {
    const all: string[] = []
    for (const place of [{}, ...workspaces.list().map(({ id }) => ({ workspaceId: id }))]) {
      if ((await tools.complete(place)).length > 0) return undefined
      all.push(...(await tools.list(place)).map(({ descriptor }) => descriptor.id))
    }
    return all
  }
  const known = { noun: 'tool', list: 'svc tool list' }
  return [
    { ...known, fields: ['tool_id'], read: ids },
    { ...known, fields: ['tool_name'], read: async () => (await ids())?.concat(OPERATIONS) },
    { ...known, fields: ['tool_namespace'], noun: 'tool namespace', read: async () => (await ids())?.map(namespaceOf) },
  ]
}

/** Applies a patch: another tool by name, in the namespace of the one before or another one; a tool that counts as writing. */
function wished(wish: ToolCallWish, { tool_name, tool_namespace, tool_read_only, input }: HookPayload): ToolCallWish {
  const isWriting = tool_read_only === false && wish.risk === 'read'
  return {
    ...wish,
    toolId: toolIdOf(wish.toolId, String(tool_name), String(tool_namespace)),
    risk: isWriting ? 'mutating' : wish.risk,
    input: input as ToolCallWish['input'],
  }
}

/** What programs are told of the end of a call. */
const endOf = ({ result, error }: ToolCallEnd) => ({
  ...(result && { result: { content: result.content, structured: result.structured } }),
  ...((error ?? textOf(result)) !== '' && { error: error ?? textOf(result) }),
})

/** The words of a failure that a tool told of itself. */
const textOf = (result: ToolResult | undefined): string =>
  result?.isError ? result.content.map(({ text = '' }) => text).join('\n') : ''

/** Applies a patch to the end of a call. A result that a hook changed keeps whether it is a failure. */
function ended(call: ToolCallEnd, { title, result, error }: HookPayload, told: HookPayload): ToolCallEnd {
  return {
    ...call,
    title: String(title),
    ...(error !== told.error && { error: String(error) }),
    ...(result !== told.result && { result: resultOf(result, call) }),
  }
}

/** A text, or an object with `content` and `structured` as the API returns them; anything else is the structured result. */
function resultOf(patched: unknown, { isError }: ToolCallEnd): ToolResult {
  const failure = isError ? { isError } : {}
  if (typeof patched === 'string') return { content: [{ type: 'text', text: patched }], ...failure }
  const { content, structured = content === undefined ? patched : undefined } = patched as HookPayload
  const parts = Array.isArray(content) ? (content as ToolResult['content']) : []
  return { content: parts, ...(structured === undefined ? {} : { structured }), ...failure }
}

const tools = definePlugin({
  name: 'hooks-tools',
  version,
  requires: { hooks: Hooks, tools: Tools, sessions: Sessions, workspaces: Workspaces },
}).surface({
  registries: [contributeTools(HookValues, ({ needs }) => toolValues(needs))],
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
          return wished(wish, done.payload)
        },
    ),
    tapWith(
      Tools,
      service => service.called,
      ({ needs: { hooks, sessions } }) =>
        async call => {
          const { place, ms, isError } = call
          const event = isError ? 'tool.post_error' : 'tool.post_call'
          const session = place.sessionId === undefined ? undefined : sessions.get(place.sessionId)
          if (!hooks.has(event, session?.id)) return undefined
          const whom = place.workspaceId === undefined ? {} : { workspaceId: place.workspaceId }
          const told = { ...toolOf(call), duration_ms: ms, ...endOf(call) }
          const done = session ? await hooks.ask(event, session, told) : await hooks.dispatch(event, whom, told)
          return done && ended(call, done.payload, told)
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

/** Taps on logged task events. */
const tasks = definePlugin({
  name: 'hooks-tasks',
  version,
  requires: { hooks: Hooks, events: Events, tasks: Tasks, sessions: Sessions },
}).surface({
  taps: (Object.keys(OF_TASKS) as (keyof typeof OF_TASKS)[]).map(name =>
    tapTasks(
      Events,
      events => events.of(TaskEvents[name]),
      ({ needs: { hooks, tasks, sessions } }) =>
        ({ scope, payload, actor }) => {
          if (!hooks.has(OF_TASKS[name])) return
          const { task_id, run_id, reason } = payload
          // A run that was given up has no session any more: who gave it up tells the agent.
          const session =
            (run_id === undefined ? undefined : tasks.run(run_id)?.session_id) ?? agentSessionOfEvent({ actor })
          const agent = session === undefined ? undefined : sessions.get(session)?.agentName
          const isReleased = name === 'task.run_released' && typeof reason === 'string'
          const autonomy = { task_id, run_id, ...(isReleased && { release_reason: reason }) }
          hooks.announce(OF_TASKS[name], scope, { agent_name: agent ?? '', autonomy, ...payload })
        },
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
          const run = runId === undefined ? {} : { run_id: runId }
          const told = { capabilities, priority_min: priorityMin, ...run, autonomy: run }
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
