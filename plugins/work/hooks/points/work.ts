import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type EventType, maybe, surfaceOf, type Tap } from '../../../../kernel/plugin.js'
import type { HookEvent } from '../../../../schemas/hooks.js'
import { agentSessionOfEvent } from '../../../access/identity/api.js'
import { happeningEvents, LayoutApplied } from '../../../desk/window-manager/api.js'
import { Events } from '../../../platform/events/api.js'
import { Automation, RunEnded, RunStarted } from '../../automation/api.js'
import { type CoordinatorNote, TaskEvents, Tasks } from '../../tasks/api.js'
import { type ToolCallEnd, type ToolCallWish, type ToolResult, Tools } from '../../tools/api.js'
import type { HookPayload, KnownValues } from '../api.js'
import { OPERATIONS } from '../families.js'
import { namespaceOf, toolIdOf } from '../record-payload.js'
import type { HooksService } from '../service.js'

const { tap } = surfaceOf<HooksService>()

const automation: readonly Tap<HooksService>[] = [
  tap(
    maybe(Automation),
    service => service.prompting,
    service =>
      async ({ prompt }, fire) => {
        const event = fire.triggerId === undefined ? 'automation.job.pre_fire' : 'automation.trigger.pre_fire'
        if (!service.has(event)) return undefined
        const { runId, agentName, workspaceId, attempt, jobId, jobName, triggerId, triggerName, cause } = fire
        const scope = workspaceId === undefined ? {} : { workspaceId }
        const about =
          jobId === undefined
            ? { trigger_id: triggerId, trigger_name: triggerName }
            : { job_id: jobId, job_name: jobName }
        const original = {
          run_id: runId,
          agent_name: agentName,
          workspace_id: workspaceId ?? '',
          attempt,
          ...about,
          prompt,
        }
        const { deny, payload } = await service.dispatch(event, { ...scope, cause }, original)
        return deny === undefined ? { prompt: String(payload.prompt) } : { prompt, deny }
      },
  ),
  tap(
    Events,
    events => events.of(RunStarted),
    service => event =>
      announceRun(
        service,
        event.payload.trigger_id === undefined ? 'automation.job.post_fire' : 'automation.trigger.post_fire',
        event,
      ),
  ),
  tap(
    Events,
    events => events.of(RunEnded),
    service => event => {
      const { status } = event.payload
      if (status === 'completed' || status === 'failed') announceRun(service, `automation.run.${status}`, event)
    },
  ),
]

/** Notifies the hooks of the workspace of a run; the payload names its agent. */
function announceRun(
  hooks: HooksService,
  event: HookEvent,
  { id, payload }: { readonly id: string; readonly payload: { readonly id: string } },
): void {
  if (!hooks.has(event)) return
  const about = hooks.kernel.needs.automation.current?.about(payload.id)
  const { agentName = '', workspaceId, willRetry = false } = about ?? {}
  const retry = event === 'automation.run.failed' ? { will_retry: willRetry } : {}
  hooks.announce(event, workspaceId, { agent_name: agentName, ...payload, ...retry }, id)
}

const windowManager: readonly Tap<HooksService>[] = [LayoutApplied, ...Object.values(happeningEvents)].map(type =>
  tap(
    Events,
    events => events.of(type as EventType<{ readonly workspace_id: string }>),
    service =>
      ({ payload }) =>
        service.announce(type.name as HookEvent, payload.workspace_id, payload),
  ),
)

/** Payload members of a tool call. */
const toolOf = ({ toolId, risk, input }: ToolCallWish | ToolCallEnd) => ({
  ...{ tool_name: toolId, tool_id: toolId, tool_namespace: namespaceOf(toolId), tool_read_only: risk === 'read' },
  ...{ title: toolId, input },
})

/** Names of all tools, and the kinds of an agent's own tool calls. Empty without the plugin `tools`. */
export function toolValues({ kernel: { needs } }: HooksService): KnownValues[] {
  const tools = needs.tools.current
  if (!tools) return []
  const ids = async () => {
    const all: string[] = []
    for (const scope of [{}, ...needs.workspaces.list().map(({ id }) => ({ workspaceId: id }))]) {
      if ((await tools.complete(scope)).length > 0) return undefined
      all.push(...(await tools.list(scope)).map(({ descriptor }) => descriptor.id))
    }
    return all
  }
  const known = { noun: 'tool', list: command('tool list') }
  return [
    { ...known, fields: ['tool_id'], read: ids },
    { ...known, fields: ['tool_name'], read: async () => (await ids())?.concat(OPERATIONS) },
    { ...known, fields: ['tool_namespace'], noun: 'tool namespace', read: async () => (await ids())?.map(namespaceOf) },
  ]
}

/** Applies a patch to a tool call: another tool, by default in the same namespace; a read-only tool may be marked as writing. */
function wished(wish: ToolCallWish, { tool_name, tool_namespace, tool_read_only, input }: HookPayload): ToolCallWish {
  const isWriting = tool_read_only === false && wish.risk === 'read'
  return {
    ...wish,
    toolId: toolIdOf(wish.toolId, String(tool_name), String(tool_namespace)),
    risk: isWriting ? 'mutating' : wish.risk,
    input: input as ToolCallWish['input'],
  }
}

/** The result or error of a tool call, as members of the payload that hook programs get. */
const endOf = ({ result, error }: ToolCallEnd) => ({
  ...(result && { result: { content: result.content, structured: result.structured } }),
  ...((error ?? textOf(result)) !== '' && { error: error ?? textOf(result) }),
})

/** The error text in the result of a failed tool. */
const textOf = (result: ToolResult | undefined): string =>
  result?.isError ? result.content.map(({ text = '' }) => text).join('\n') : ''

/** Applies a patch to the end of a call. A changed result stays a failure if it was one. */
function ended(call: ToolCallEnd, { title, result, error }: HookPayload, original: HookPayload): ToolCallEnd {
  return {
    ...call,
    title: String(title),
    ...(error !== original.error && { error: String(error) }),
    ...(result !== original.result && { result: resultOf(result, call) }),
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

const tools: readonly Tap<HooksService>[] = [
  tap(
    maybe(Tools),
    service => service.calling,
    service => async wish => {
      const { place } = wish
      const session = place.sessionId === undefined ? undefined : service.session(place.sessionId)
      const whom = place.workspaceId === undefined ? {} : { workspaceId: place.workspaceId }
      const done = session
        ? await service.ask('tool.pre_call', session, toolOf(wish))
        : await service.dispatch('tool.pre_call', whom, toolOf(wish))
      if (!done) return undefined
      if (done.deny !== undefined) return { ...wish, deny: done.deny }
      return wished(wish, done.payload)
    },
  ),
  tap(
    maybe(Tools),
    service => service.called,
    service => async call => {
      const { place, ms, isError } = call
      const event = isError ? 'tool.post_error' : 'tool.post_call'
      const session = place.sessionId === undefined ? undefined : service.session(place.sessionId)
      if (!service.has(event, session?.id)) return undefined
      const whom = place.workspaceId === undefined ? {} : { workspaceId: place.workspaceId }
      const original = { ...toolOf(call), duration_ms: ms, ...endOf(call) }
      const done = session ? await service.ask(event, session, original) : await service.dispatch(event, whom, original)
      return done && ended(call, done.payload, original)
    },
  ),
]

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

const tasks: readonly Tap<HooksService>[] = [
  ...(Object.keys(OF_TASKS) as (keyof typeof OF_TASKS)[]).map(name =>
    tap(
      Events,
      events => events.of(TaskEvents[name]),
      service =>
        ({ scope, payload, actor }) => {
          if (!service.has(OF_TASKS[name])) return
          const { task_id, run_id, reason } = payload
          const run = run_id === undefined ? undefined : service.kernel.needs.tasks.current?.run(run_id)
          // A released run has no session, so the agent is taken from the actor of the event.
          const session = run?.session_id ?? agentSessionOfEvent({ actor })
          const agent = session === undefined ? undefined : service.session(session)?.agentName
          const isReleased = name === 'task.run_released' && typeof reason === 'string'
          const autonomy = { task_id, run_id, ...(isReleased && { release_reason: reason }) }
          service.announce(OF_TASKS[name], scope, { agent_name: agent ?? '', autonomy, ...payload })
        },
    ),
  ),
  tap(
    maybe(Tasks),
    service => service.preClaim,
    service => async (wish, session) => {
      const { capabilities, priorityMin, runId } = wish
      const run = runId === undefined ? {} : { run_id: runId }
      const original = { capabilities, priority_min: priorityMin, ...run, autonomy: run }
      const done = await service.ask('task.run.pre_claim', session, original)
      if (!done) return undefined
      if (done.deny !== undefined) return { ...wish, deny: done.deny }
      const { capabilities: able, priority_min: least } = done.payload as typeof original
      return { ...wish, capabilities: able, priorityMin: least }
    },
  ),
]

/** A coordinator in the input of hook programs. */
const coordinatorOf = ({ taskId, runId, workspaceId, agentName, sessionId }: CoordinatorNote) => ({
  agent_name: agentName,
  ...(workspaceId !== undefined && { workspace_id: workspaceId }),
  ...(sessionId !== undefined && { session_id: sessionId }),
  autonomy: { task_id: taskId, run_id: runId, ...(sessionId !== undefined && { coordinator_session_id: sessionId }) },
})

const coordinators: readonly Tap<HooksService>[] = [
  tap(
    maybe(Tasks),
    service => service.coordinatorPreSpawn,
    service => async wish => {
      const event = 'coordinator.pre_spawn'
      if (!service.has(event)) return undefined
      const { workspaceId, provider = '', model = '' } = wish
      const whom = workspaceId === undefined ? {} : { workspaceId }
      const original = { ...service.workspaceFields(workspaceId ?? ''), ...coordinatorOf(wish), provider, model }
      const { deny, payload } = await service.dispatch(event, whom, original)
      if (deny !== undefined) return { ...wish, deny }
      return {
        ...wish,
        agentName: String(payload.agent_name),
        provider: String(payload.provider) || undefined,
        model: String(payload.model) || undefined,
      }
    },
  ),
  ...(
    [
      ['coordinator.spawned', 'coordinatorSpawned'],
      ['coordinator.stopped', 'coordinatorStopped'],
    ] as const
  ).map(([event, name]) =>
    tap(
      maybe(Tasks),
      service => service[name],
      service => note => service.announce(event, note.workspaceId, coordinatorOf(note)),
    ),
  ),
  tap(
    maybe(Tasks),
    service => service.coordinatorDecision,
    service => (note, runs) =>
      service.announce('coordinator.decision', note.workspaceId, {
        ...coordinatorOf(note),
        decision: 'fan_out',
        run_ids: runs,
      }),
  ),
  tap(
    maybe(Tasks),
    service => service.coordinatorFailed,
    service => (note, error) =>
      service.announce('coordinator.failed', note.workspaceId, { ...coordinatorOf(note), error }),
  ),
]

/** Taps on automation, window manager, tools and tasks, which are optional. */
export const workTaps: readonly Tap<HooksService>[] = [
  ...automation,
  ...windowManager,
  ...tools,
  ...tasks,
  ...coordinators,
]
