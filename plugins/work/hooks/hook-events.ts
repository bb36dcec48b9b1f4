import type { HookTable } from '../../../kernel/plugin.js'
import { HookEvent } from '../../../schemas/hooks.js'
import { points as sandboxPoints } from '../../access/sandboxes/api.js'
import { points as spawnPoints } from '../../agents/self-service/api.js'
import { points as networkPoints } from '../../reach/network/api.js'
import { points as sessionPoints } from '../sessions/api.js'
import { points as taskPoints } from '../tasks/api.js'
import { familyOf, type HookFamily } from './families.js'

/** Fields that a patch may set; `deny`, and `cancel` for a run, abort the operation. A patch with any other field is `rejected`. */
export type PatchMember =
  | 'deny'
  | 'cancel'
  | 'session_name'
  | 'session_type'
  | 'agent_name'
  | 'workspace_id'
  | 'workspace'
  | 'message'
  | 'prompt'
  | 'context_blocks'
  | 'command'
  | 'args'
  | 'cwd'
  | 'name'
  | 'namespace'
  | 'read_only'
  | 'input'
  | 'title'
  | 'result'
  | 'error'
  | 'decision'
  | 'class'
  | 'permissions'
  | 'capabilities'
  | 'priority_min'
  | 'provider'
  | 'model'
  | 'request'

/** Static properties of an event. */
export interface EventFacts {
  /** Whether sync hooks are allowed. */
  readonly sync: boolean
  /** Fields that a patch may set; empty for observation-only events. */
  readonly patch: readonly PatchMember[]
  /** False for events that the daemon does not emit yet. */
  readonly emitted: boolean
}

const ASYNC = false
const notification = (sync = true): EventFacts => ({ sync, patch: [], emitted: true })
const pending = (sync = true): EventFacts => ({ sync, patch: [], emitted: false })
const decides = (...patch: PatchMember[]): EventFacts => ({ sync: true, patch, emitted: true })

/** The hook tables whose hook names are events: a new hook there becomes an event with one line in `schemas/hooks.ts`. */
const TABLES: readonly HookTable[] = [sessionPoints, sandboxPoints, spawnPoints, taskPoints, networkPoints]
const POINTS = new Map(TABLES.flatMap(table => Object.values(table).map(point => [point.name, point])))

/** Allowed patch fields of the events that are pipelines of these tables. */
const PATCHES: { readonly [E in HookEvent]?: readonly PatchMember[] } = {
  'session.pre_create': ['session_name', 'session_type', 'agent_name', 'workspace_id', 'workspace', 'deny'],
  'session.pre_resume': ['session_name', 'deny'],
  'session.pre_stop': ['deny'],
  'sandbox.prepare': ['deny'],
  'input.pre_submit': ['message', 'context_blocks', 'deny'],
  'prompt.post_assemble': ['prompt', 'context_blocks', 'deny'],
  'agent.pre_start': ['command', 'args', 'cwd', 'deny'],
  'tool.pre_call': ['name', 'namespace', 'read_only', 'input', 'deny'],
  'tool.post_call': ['title', 'result', 'error'],
  'tool.post_error': ['title', 'result', 'error'],
  'task.run.pre_claim': ['capabilities', 'priority_min', 'deny'],
  'coordinator.pre_spawn': ['agent_name', 'provider', 'model', 'deny'],
  'spawn.pre_create': ['permissions', 'deny'],
  'worktree.pre_create': ['deny'],
  'network.participation.pre_resolve': ['request', 'deny'],
}

/** Events of these tables that only async hooks observe. */
const OBSERVED: ReadonlySet<HookEvent> = new Set<HookEvent>([
  'event.pre_record',
  'event.post_record',
  'message.delta',
  'permission.resolved',
  'permission.denied',
  'network.participation.resolved',
  'network.message.persisted',
  'network.thread.opened',
  'network.direct_room.opened',
  'network.peer.joined',
  'network.peer.left',
  'network.work.opened',
  'network.work.transitioned',
  'network.work.closed',
])

/** The events outside of these tables. */
const OTHERS: { readonly [E in HookEvent]?: EventFacts } = {
  'session.post_stop': notification(),
  'sandbox.sync.before': pending(),
  'sandbox.sync.after': pending(),
  'automation.job.pre_fire': decides('prompt', 'cancel', 'deny'),
  'automation.job.post_fire': notification(ASYNC),
  'automation.trigger.pre_fire': decides('prompt', 'cancel', 'deny'),
  'automation.trigger.post_fire': notification(ASYNC),
  'automation.run.completed': notification(ASYNC),
  'automation.run.failed': notification(ASYNC),
  'agent.soul.snapshot.resolved': notification(ASYNC),
  'agent.soul.mutation.after': notification(ASYNC),
  'agent.heartbeat.policy.resolved': notification(ASYNC),
  'agent.heartbeat.wake.before': decides('deny'),
  'agent.heartbeat.wake.after': notification(ASYNC),
  'session.health.update.after': notification(),
  'permission.request': decides('decision', 'class', 'deny'),
  'context.pre_compact': pending(),
  'task.blocked': notification(),
  'task.unblocked': notification(),
  'task.needs_attention': notification(),
  'task.recovered': notification(),
  'task.status_changed': notification(),
  'task.run.enqueued': notification(),
  'task.run.post_claim': notification(),
  'task.run.lease_extended': notification(),
  'task.run.lease_expired': notification(),
  'task.run.lease_recovered': notification(),
  'task.run.released': notification(),
  'task.run.completed': notification(),
  'task.run.failed': notification(),
  'loop.started': pending(),
  'loop.generation.pre': pending(),
  'loop.generation.post': pending(),
  'loop.gate.pre': pending(),
  'loop.gate.post': pending(),
  'loop.node.terminal': pending(),
  'loop.terminal': pending(),
  'window_manager.layout.applied': notification(ASYNC),
  'window_manager.desktop.created': notification(ASYNC),
  'window_manager.desktop.deleted': notification(ASYNC),
  'window_manager.window.moved': notification(ASYNC),
  'window_manager.window.opened': notification(ASYNC),
  'window_manager.window.closed': notification(ASYNC),
  'window_manager.stack.grouped': notification(ASYNC),
  'window_manager.stack.ungrouped': notification(ASYNC),
  'window_manager.stack.activated': notification(ASYNC),
}

/** Description of the event in the table of its plugin; undefined for an event of no table. */
export const pointText = (event: HookEvent): string | undefined => POINTS.get(event)?.summary

function factsOf(event: HookEvent): EventFacts {
  const other = OTHERS[event]
  if (other) return other
  const point = POINTS.get(event)
  if (!point) throw new TypeError(`no plugin has a hook for the event ${event}`)
  return { sync: !OBSERVED.has(event), patch: PATCHES[event] ?? [], emitted: true }
}

/** The catalog of hook events. */
export const hookEvents = Object.fromEntries(HookEvent.options.map(event => [event, factsOf(event)])) as Readonly<
  Record<HookEvent, EventFacts>
>

/** Agents and actions covered by an event. The daemon only sees the reports and requests of an agent. */
export function reachOf(event: HookEvent): string {
  return REACH[familyOf(event)] ?? 'every agent'
}

const REACH: { readonly [F in HookFamily]?: string } = {
  tool:
    'file access and commands that an agent requests through ACP, and tools of the daemon; tools that an agent runs itself are only ' +
    'reported afterwards and cannot be denied or changed',
  permission: 'agents that request permission; an agent that never asks cannot be denied',
  context: 'agents that report their context usage',
}
