import { iso } from '../../../kernel/plugin.js'
import type { Session, SessionDetail, SessionHealth } from '../../../schemas/sessions.js'
import { bounded, speedWithout } from '../acp/api.js'
import type { SessionFailure, SessionInfo } from './api.js'
import { holderOf } from './attach/lease.js'
import type { SessionsContext } from './context.js'
import { failureToWire } from './events.js'
import { forkLineage } from './fork/lineage.js'
import type { LiveSession } from './lifecycle/live-session.js'
import type { OpenSessions } from './lifecycle/open-sessions.js'
import { localParticipation } from './participation.js'
import { confinementOf } from './row.js'
import { effectiveOf, effortToWire, providerOf, selectionOf, wishOf } from './runtime/selection.js'
import { configOptions, effectiveToWire } from './runtime/wire.js'
import type { SessionRow } from './table.js'

/** Failures at the request of a person or program, which do not make the badge `failed`. */
const NO_FAULT: ReadonlySet<string> = new Set(['cancellation'])

/** A session as other plugins see it. */
export function infoOf(row: SessionRow): SessionInfo {
  const failure = failureOf(row)
  const confinement = confinementOf(row)
  return {
    id: row.id,
    name: row.name,
    type: row.type,
    agentName: row.agent_name,
    workspaceId: row.workspace_id,
    state: row.state,
    ...(row.stop_reason && { stopReason: row.stop_reason }),
    ...(row.stop_detail && { stopDetail: row.stop_detail }),
    ...(failure && { failure }),
    ...(confinement && { confinement }),
    ...(row.permissions && { permissions: row.permissions }),
    provider: providerOf(row),
    ...(row.model && { model: row.model }),
    ...(row.lineage && { lineage: JSON.parse(row.lineage) }),
    ...(row.acp_session_id && { acpSessionId: row.acp_session_id }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** A session on the wire. */
export function sessionToWire(
  row: SessionRow,
  live: LiveSession | undefined,
  now: number,
  withHealth = false,
): Session {
  const failure = failureOf(row)
  const agent = live?.binding.running?.agent
  const held = holderOf(row, now)
  const wish = wishOf(row)
  const effective = effectiveOf(row)
  const model = effective?.model ?? wish.model
  const effort = effective?.reasoning_effort ?? wish.effort
  const { speed } = wish
  return {
    id: row.id,
    ...(row.name && { name: row.name }),
    type: row.type,
    agent_name: row.agent_name,
    workspace_id: row.workspace_id,
    workspace_path: row.workspace_path,
    provider: providerOf(row),
    ...(model && { model }),
    ...(row.permissions && { permissions: row.permissions }),
    ...sandboxToWire(row, agent !== undefined),
    ...(row.lineage && { lineage: JSON.parse(row.lineage) }),
    resolved_network_participation: row.participation
      ? JSON.parse(row.participation)
      : localParticipation('built_in_local'),
    ...effortToWire(effort),
    ...(speed && { speed, speed_resolution: effective?.speed_resolution ?? speedWithout(speed) }),
    state: row.state,
    badge: badgeOf(row, live),
    ...(row.stop_reason && { stop_reason: row.stop_reason }),
    ...(row.stop_detail && { stop_detail: row.stop_detail }),
    ...(failure && { failure: failureToWire(failure) }),
    ...(row.acp_session_id && { acp_session_id: row.acp_session_id }),
    ...(row.supports_load !== null && {
      acp_caps: {
        supports_load_session: row.supports_load === 1,
        ...(agent && { supported_modes: [...agent.session.modes], ...configOptions(agent.choices.options) }),
      },
    }),
    ...activityOf(live, now),
    ...(withHealth && { health: healthToWire(row, live) }),
    ...(row.forked_from !== null && { lineage: forkLineage(row.forked_from) }),
    attachable: row.state === 'active',
    ...(held && { attached_to: held.holder, attach_expires_at: iso(held.until) }),
    available_commands: (live?.binding.updates.commands ?? []).map(command => ({ ...command })),
    transcript_epoch: row.epoch,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

/** A session with its process and its pending requests. */
function detailToWire(row: SessionRow, live: LiveSession | undefined, now: number): SessionDetail {
  const running = live?.binding.running
  const session = running?.agent.session
  const { lineage, ...wire } = sessionToWire(row, live, now, true)
  const prompts = session?.prompts
  const selected = selectionOf(row)
  return {
    ...wire,
    ...(lineage && { lineage: { ...lineage, notify_creator: false } }),
    ...(row.worktree_id !== null && { worktree_id: row.worktree_id }),
    archived_at: row.archived_at === null ? null : iso(row.archived_at),
    ...(row.attention_changed_at !== null && { attention_changed_at: iso(row.attention_changed_at) }),
    pending_interactions: [
      ...(running?.clarifications.pending ?? []).map(({ request_id, question, choices, asked_at, turnId }) => ({
        interaction_id: request_id,
        provider_request_id: request_id,
        kind: 'clarification',
        title: question,
        status: 'pending',
        turn_id: turnId,
        ...(choices && { choices }),
        created_at: asked_at,
      })),
      ...(running?.permissions.pending ?? []).map(pending => ({
        interaction_id: pending.requestId,
        provider_request_id: pending.requestId,
        kind: 'permission',
        title: bounded(pending.question.title),
        status: 'pending',
        turn_id: pending.turnId,
        decisions: ['allow-once', 'allow-always', 'reject-once', 'reject-always'],
        created_at: iso(pending.createdAt),
      })),
    ],
    runtime: {
      ...(session &&
        prompts && {
          acp_caps: {
            supported_modes: [...session.modes],
            ...configOptions(running.agent.choices.options),
            supports_load_session: session.supportsLoad,
            prompt_audio: prompts.audio,
            prompt_embedded_context: prompts.embeddedContext,
            prompt_image: prompts.image,
          },
          acp_session_id: session.acpSessionId,
          effective: effectiveToWire(row),
        }),
      ...(row.failure_summary && { failure: row.failure_summary }),
      ...(selected && { selected }),
      selection_revision: row.selection_revision,
      status: running
        ? 'running'
        : row.state === 'stopped'
          ? 'stopped'
          : row.state === 'starting'
            ? 'starting'
            : 'unbound',
    },
  }
}

/** Health of a session, computed without a request to the agent. */
export function healthToWire(row: SessionRow, live: LiveSession | undefined): SessionHealth {
  const active = row.state === 'active'
  const prompting = active && live?.turn !== undefined
  const stale = silenceOf(live)
  const presentAt = live?.binding.presentAt
  const ineligible = !active
    ? 'session_not_attachable'
    : prompting
      ? 'session_prompt_active'
      : stale
        ? 'session_health_stale'
        : undefined
  return {
    session_id: row.id,
    agent_name: row.agent_name,
    workspace_id: row.workspace_id,
    state: row.state === 'stopped' ? 'stopped' : prompting ? 'prompting' : 'idle',
    health: row.state === 'stopped' ? (failureOf(row) ? 'dead' : 'unknown') : stale ? 'stale' : 'healthy',
    active_prompt: prompting,
    attachable: active,
    eligible_for_wake: ineligible === undefined,
    ...(ineligible && { ineligibility_reason: ineligible }),
    ...((stale ?? row.failure_summary) && { last_error: stale ?? row.failure_summary ?? '' }),
    last_activity_at: iso(live?.turn?.lastActivityAt ?? row.last_activity_at),
    ...(presentAt !== undefined && { last_presence_at: iso(presentAt) }),
    updated_at: iso(row.updated_at),
  }
}

/** Reason for which no more output is expected, from the running turn or from the idle process. */
export function silenceOf(live: LiveSession | undefined): string | undefined {
  if (live?.turn) return live.turn.stalled ? 'the running turn shows no activity' : undefined
  if (!live?.binding.standstill) return undefined
  const { group } = live.binding
  return `its process ${group} was stopped by a signal (state T); continue it: kill -CONT -- -${group}`
}

/** Whether the agent waits for a person's answer. */
export function isWaiting(live: LiveSession | undefined): boolean {
  return live?.binding.waitsForPerson ?? false
}

/** The one-word state of a session; the first matching rule decides. */
function badgeOf(row: SessionRow, live: LiveSession | undefined): string {
  const failure = failureOf(row)
  if (row.state === 'stopped') return failure && !NO_FAULT.has(failure.kind) ? 'failed' : 'stopped'
  if (silenceOf(live)) return 'hung'
  if (isWaiting(live)) return 'waiting'
  if (row.state === 'starting' || row.state === 'stopping' || live?.turn) return 'running'
  return row.state === 'active' ? 'idle' : 'unknown'
}

/** The member `activity` while a turn runs. */
export function activityOf(live: LiveSession | undefined, now: number) {
  const turn = live?.turn
  if (!turn) return {}
  const tool = turn.calls.current
  const elapsed = Math.max(0, now - turn.startedAt)
  return {
    activity: {
      turn_id: turn.id,
      turn_source: turn.request.source,
      turn_started_at: iso(turn.startedAt),
      last_activity_at: iso(turn.lastActivityAt),
      last_activity_kind: turn.lastActivity.kind,
      ...(turn.lastActivity.detail && { last_activity_detail: turn.lastActivity.detail }),
      ...(tool && { current_tool: tool.title, tool_call_id: tool.id }),
      elapsed_ms: elapsed,
      elapsed_seconds: Math.floor(elapsed / 1000),
      idle_seconds: Math.floor(Math.max(0, now - turn.lastActivityAt) / 1000),
      iteration_current: turn.calls.startedCount,
      iteration_max: turn.limits.iterations ?? 0,
      ...(turn.limits.deadline !== undefined && { deadline_at: iso(turn.limits.deadline) }),
    },
  }
}

/** The member `sandbox` of a session that has a sandbox, or should have one. */
function sandboxToWire(row: SessionRow, isRunning: boolean): Pick<Session, 'sandbox'> {
  const how = confinementOf(row)
  if (!how) return {}
  if (how.kind === 'none') return { sandbox: { backend: 'none', state: 'unavailable', last_sync_error: how.reason } }
  const { backend, profile, network } = how
  const state = isRunning ? 'running' : row.state === 'stopped' ? 'stopped' : 'prepared'
  return { sandbox: { backend, profile, sandbox_id: row.id, state, provider_state_json: { network } } }
}

function failureOf(row: SessionRow): SessionFailure | undefined {
  if (!row.failure_kind) return undefined
  return {
    kind: row.failure_kind,
    summary: row.failure_summary ?? '',
    ...(row.failure_bundle && { crashBundlePath: row.failure_bundle }),
  }
}

/** Wire forms of sessions, including their in-memory state. */
export class SessionWire {
  constructor(
    private readonly context: Pick<SessionsContext, 'health' | 'kernel'>,
    private readonly open: Pick<OpenSessions, 'peek'>,
  ) {}

  session(row: SessionRow, withHealth = false): Session {
    if (withHealth) this.context.health.note(row.id)
    return sessionToWire(row, this.open.peek(row.id), this.context.kernel.clock.now(), withHealth)
  }

  detail(row: SessionRow): SessionDetail {
    return detailToWire(row, this.open.peek(row.id), this.context.kernel.clock.now())
  }

  /** The check of the health may be the first to find an unresponsive process. */
  health(row: SessionRow): SessionHealth {
    this.context.health.note(row.id)
    return healthToWire(row, this.open.peek(row.id))
  }
}
