import type { HookEvent } from '../../schemas/hooks.js'
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
const told = (sync = true): EventFacts => ({ sync, patch: [], emitted: true })
const pending = (sync = true): EventFacts => ({ sync, patch: [], emitted: false })
const decides = (...patch: PatchMember[]): EventFacts => ({ sync: true, patch, emitted: true })

/** The catalog of hook events. */
export const hookEvents: Readonly<Record<HookEvent, EventFacts>> = {
  'session.pre_create': decides('session_name', 'session_type', 'agent_name', 'workspace_id', 'workspace', 'deny'),
  'session.post_create': told(),
  'session.pre_resume': decides('session_name', 'deny'),
  'session.post_resume': told(),
  'session.pre_stop': decides('deny'),
  'session.post_stop': told(),
  'session.message_persisted': told(),
  'sandbox.prepare': decides('deny'),
  'sandbox.ready': told(),
  'sandbox.sync.before': pending(),
  'sandbox.sync.after': pending(),
  'sandbox.stop': told(),
  'input.pre_submit': decides('message', 'context_blocks', 'deny'),
  'prompt.post_assemble': decides('prompt', 'context_blocks', 'deny'),
  'event.pre_record': told(ASYNC),
  'event.post_record': told(ASYNC),
  'automation.job.pre_fire': decides('prompt', 'cancel', 'deny'),
  'automation.job.post_fire': told(ASYNC),
  'automation.trigger.pre_fire': decides('prompt', 'cancel', 'deny'),
  'automation.trigger.post_fire': told(ASYNC),
  'automation.run.completed': told(ASYNC),
  'automation.run.failed': told(ASYNC),
  'agent.pre_start': decides('command', 'args', 'cwd', 'deny'),
  'agent.spawned': told(),
  'agent.crashed': told(),
  'agent.stopped': told(),
  'agent.soul.snapshot.resolved': told(ASYNC),
  'agent.soul.mutation.after': told(ASYNC),
  'agent.heartbeat.policy.resolved': told(ASYNC),
  'agent.heartbeat.wake.before': decides('deny'),
  'agent.heartbeat.wake.after': told(ASYNC),
  'session.health.update.after': told(),
  'turn.start': told(),
  'turn.end': told(),
  'message.start': told(),
  'message.delta': told(ASYNC),
  'message.end': told(),
  'tool.pre_call': decides('name', 'namespace', 'read_only', 'input', 'deny'),
  'tool.post_call': decides('title', 'result', 'error'),
  'tool.post_error': decides('title', 'result', 'error'),
  'permission.request': decides('decision', 'class', 'deny'),
  'permission.resolved': told(ASYNC),
  'permission.denied': told(ASYNC),
  'context.pre_compact': pending(),
  'context.post_compact': told(),
  'coordinator.pre_spawn': pending(),
  'coordinator.spawned': pending(),
  'coordinator.decision': pending(),
  'coordinator.stopped': pending(),
  'coordinator.failed': pending(),
  'task.blocked': told(),
  'task.unblocked': told(),
  'task.needs_attention': told(),
  'task.recovered': told(),
  'task.status_changed': told(),
  'task.run.enqueued': told(),
  'task.run.pre_claim': decides('capabilities', 'priority_min', 'deny'),
  'task.run.post_claim': told(),
  'task.run.lease_extended': told(),
  'task.run.lease_expired': told(),
  'task.run.lease_recovered': told(),
  'task.run.released': told(),
  'task.run.completed': told(),
  'task.run.failed': told(),
  'loop.started': pending(),
  'loop.generation.pre': pending(),
  'loop.generation.post': pending(),
  'loop.gate.pre': pending(),
  'loop.gate.post': pending(),
  'loop.node.terminal': pending(),
  'loop.terminal': pending(),
  'spawn.pre_create': decides('permissions', 'deny'),
  'spawn.created': told(),
  'spawn.parent_stopped': told(),
  'spawn.ttl_expired': told(),
  'spawn.reaped': told(),
  'network.thread.opened': pending(ASYNC),
  'network.direct_room.opened': pending(ASYNC),
  'network.message.persisted': pending(ASYNC),
  'network.work.opened': pending(ASYNC),
  'network.work.transitioned': pending(ASYNC),
  'network.work.closed': pending(ASYNC),
  'network.peer.joined': pending(ASYNC),
  'network.peer.left': pending(ASYNC),
  'network.participation.pre_resolve': pending(),
  'network.participation.resolved': pending(ASYNC),
  'window_manager.layout.applied': told(ASYNC),
  'window_manager.desktop.created': told(ASYNC),
  'window_manager.desktop.deleted': told(ASYNC),
  'window_manager.window.moved': told(ASYNC),
  'session.runtime_recovery.started': told(),
  'session.runtime_recovery.succeeded': told(),
  'session.runtime_recovery.exhausted': told(),
  'session.attention.changed': told(),
  'window_manager.window.opened': told(ASYNC),
  'window_manager.window.closed': told(ASYNC),
  'window_manager.stack.grouped': told(ASYNC),
  'window_manager.stack.ungrouped': told(ASYNC),
  'window_manager.stack.activated': told(ASYNC),
  'worktree.pre_create': decides('deny'),
  'worktree.pre_remove': told(),
  'worktree.created': told(),
  'worktree.adopted': told(),
  'worktree.removed': told(),
}

/** Which agents and actions an event covers. The daemon only sees what an agent reports or requests. */
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
