import { iso } from '../../kernel/plugin.js'
import type { Session, SessionDetail, SessionHealth } from '../../schemas/sessions.js'
import type { SessionFailure, SessionInfo } from './api.js'
import { failureToWire } from './events.js'
import type { LiveSession } from './lifecycle/live-session.js'
import type { SessionRow } from './table.js'

/** Failures that are somebody's wish, so that they do not make a badge `failed`. */
const NO_FAULT: ReadonlySet<string> = new Set(['cancellation'])

/** A session as other plugins see it. */
export function infoOf(row: SessionRow): SessionInfo {
  const failure = failureOf(row)
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
  return {
    id: row.id,
    ...(row.name && { name: row.name }),
    type: row.type,
    agent_name: row.agent_name,
    workspace_id: row.workspace_id,
    workspace_path: row.workspace_path,
    provider: row.provider,
    ...(row.model && { model: row.model }),
    ...(row.reasoning_effort && { reasoning_effort: row.reasoning_effort as NonNullable<Session['reasoning_effort']> }),
    ...(row.speed && {
      speed: row.speed,
      speed_resolution: { requested: row.speed, status: 'unsupported' as const, reason: 'capability_absent' as const },
    }),
    state: row.state,
    badge: badgeOf(row, live),
    ...(row.stop_reason && { stop_reason: row.stop_reason }),
    ...(row.stop_detail && { stop_detail: row.stop_detail }),
    ...(failure && { failure: failureToWire(failure) }),
    ...(row.acp_session_id && { acp_session_id: row.acp_session_id }),
    ...(row.supports_load !== null && {
      acp_caps: {
        supports_load_session: row.supports_load === 1,
        ...(agent && { supported_modes: [...agent.session.modes] }),
      },
    }),
    ...activityOf(live, now),
    ...(withHealth && { health: healthToWire(row, live) }),
    attachable: row.state === 'active',
    available_commands: (live?.binding.updates.commands ?? []).map(command => ({ ...command })),
    transcript_epoch: row.epoch,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

/** A session with its process and what waits for an answer. */
export function detailToWire(row: SessionRow, live: LiveSession | undefined, now: number): SessionDetail {
  const running = live?.binding.running
  const session = running?.agent.session
  const { lineage: _lineage, ...wire } = sessionToWire(row, live, now, true)
  const prompts = session?.prompts
  return {
    ...wire,
    archived_at: null,
    pending_interactions: (running?.permissions.pending ?? []).map(pending => ({
      interaction_id: pending.requestId,
      provider_request_id: pending.requestId,
      kind: 'permission',
      title: pending.title,
      status: 'pending',
      turn_id: pending.turnId,
      decisions: ['allow-once', 'allow-always', 'reject-once', 'reject-always'],
      created_at: iso(pending.createdAt),
    })),
    runtime: {
      ...(session &&
        prompts && {
          acp_caps: {
            supported_modes: [...session.modes],
            supports_load_session: session.supportsLoad,
            prompt_audio: prompts.audio,
            prompt_embedded_context: prompts.embeddedContext,
            prompt_image: prompts.image,
          },
          acp_session_id: session.acpSessionId,
          effective: { provider: row.provider, ...(row.model && { model: row.model }) },
        }),
      ...(row.failure_summary && { failure: row.failure_summary }),
      selection_revision: 0,
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

/** Health of a session; computed without asking the agent. */
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

/** Why it looks as if nothing more will come: of the turn that runs, or of the process that waits for one. */
export function silenceOf(live: LiveSession | undefined): string | undefined {
  if (live?.turn) return live.turn.stalled ? 'the turn that runs shows no sign of life' : undefined
  if (!live?.binding.standstill) return undefined
  const { group } = live.binding
  return `its process ${group} was stopped from outside (state T); kill -CONT -- -${group} lets it go on`
}

/** The one-word state of a session; the first rule that holds. */
function badgeOf(row: SessionRow, live: LiveSession | undefined): string {
  const failure = failureOf(row)
  if (row.state === 'stopped') return failure && !NO_FAULT.has(failure.kind) ? 'failed' : 'stopped'
  if (silenceOf(live)) return 'hung'
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
      iteration_current: 0,
      iteration_max: 0,
    },
  }
}

function failureOf(row: SessionRow): SessionFailure | undefined {
  if (!row.failure_kind) return undefined
  return {
    kind: row.failure_kind,
    summary: row.failure_summary ?? '',
    ...(row.failure_bundle && { crashBundlePath: row.failure_bundle }),
  }
}
