import { iso } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import type { HookRequest } from '../../hooks/api.js'
import { SessionCreated, type SessionInfo, SessionStopped } from '../../sessions/api.js'
import { Observation, RunEnded } from '../api.js'
import type { K } from '../needs.js'
import type { RunRow } from '../runs/run-row.js'
import type { RunStore } from '../runs/runs.js'
import { type Envelope, placeOf } from './envelope.js'
import { HookRequests } from './hook-requests.js'
import { matches } from './match.js'
import type { TriggerRecord } from './trigger-kind.js'
import type { Triggers } from './triggers.js'

/** Maximum length of a followed chain of causes. */
const MAX_CAUSES = 64

/** Payload of a session event. */
interface SessionTold {
  readonly id: string
  readonly agent_name: string
  readonly workspace_id: string
  readonly stop_reason?: string
  readonly stop_detail?: string
}

/** Converts logged events into envelopes for triggers. */
export class Observed {
  readonly hookRequests: HookRequests

  constructor(
    private readonly kernel: K,
    private readonly triggers: Triggers,
    private readonly runs: RunStore,
  ) {
    this.hookRequests = new HookRequests(kernel, whom => this.#depthBehind(whom))
  }

  /** The enabled triggers that match, in ascending id order. */
  matching(envelope: Envelope): TriggerRecord[] {
    return this.triggers
      .about(envelope.kind, envelope.workspaceId)
      .filter(trigger => this.triggers.enabled(trigger) && matches(trigger, envelope))
  }

  /** The envelope of an event; undefined for events that fire no triggers. */
  envelopeOf(event: StoredEvent): Envelope | undefined {
    if (event.name === RunEnded.name) return this.#runEnvelope(event)
    if (event.name === Observation.name) return observationEnvelope(event as StoredEvent<Observation>)
    const payload = event.payload as SessionTold
    const session = this.kernel.needs.sessions.get(payload.id)
    const stopped = event.name === SessionStopped.name
    if (!stopped && event.name !== SessionCreated.name) return undefined
    return {
      kind: event.name,
      source: 'observer',
      ...placeOf(payload.workspace_id || undefined),
      data: {
        ...this.#data(session, payload),
        state: stopped ? 'stopped' : 'active',
        updated_at: iso(event.at),
        ...(stopped ? { stop_reason: payload.stop_reason ?? '', stop_detail: payload.stop_detail ?? '' } : {}),
      },
    }
  }

  #data(session: SessionInfo | undefined, { id, agent_name, workspace_id }: SessionTold) {
    const workspace = this.kernel.needs.workspaces.get(workspace_id)
    const bare = { id, name: '', type: 'user' as const, agentName: agent_name, workspaceId: workspace_id }
    return { ...sessionData(session ?? bare, workspace), agent_name, workspace_id }
  }

  /** The end of a run; canceled runs fire nothing. */
  #runEnvelope({ payload, at, scope }: StoredEvent): Envelope | undefined {
    const run = payload as {
      id: string
      status: string
      job_id?: string
      trigger_id?: string
      session_id?: string
      error?: string
    }
    if (run.status !== 'completed' && run.status !== 'failed') return undefined
    const { id, ...more } = run
    return {
      kind: `automation.run.${run.status}`,
      source: 'observer',
      ...placeOf(scope),
      data: { run_id: id, ...more, ended_at: iso(at) },
    }
  }

  /** Number of trigger runs in the chain of causes of an event. */
  depthOf(event: StoredEvent): number {
    const { events } = this.kernel.needs
    let at: StoredEvent | undefined = event
    for (let n = 0; at && n < MAX_CAUSES; n++) {
      const run: RunRow | undefined = at.name.startsWith('automation.run.')
        ? this.runs.get(at.subject ?? '')
        : this.runs.ofSession(at.actor.id)
      if (run && run.trigger_id !== null) return run.depth
      const { cause, actor }: StoredEvent = at
      const before: StoredEvent | undefined = cause === undefined ? undefined : events.find(cause, at.seq)
      const hookDepth = before || cause === undefined ? 0 : this.hookRequests.depthOf(cause)
      if (hookDepth > 0) return hookDepth
      // Without a cause, continue with the event that created the session.
      at = before ?? (actor.kind === 'session' ? this.#madeBy(actor.id) : undefined)
    }
    return 0
  }

  /** Trigger depth of the subject of a hook run. */
  #depthBehind({ sessionId, cause }: HookRequest['whoms'][number]): number {
    const run = sessionId ? this.runs.ofSession(sessionId) : undefined
    if (run && run.trigger_id !== null) return run.depth
    const event = cause === undefined ? undefined : this.kernel.needs.events.find(cause)
    const made = sessionId ? this.#madeBy(sessionId) : undefined
    return Math.max(
      event ? this.depthOf(event) : cause === undefined ? 0 : this.hookRequests.depthOf(cause),
      made ? this.depthOf(made) : 0,
    )
  }

  #madeBy(session: string): StoredEvent | undefined {
    return this.kernel.needs.events.latest({ name: SessionCreated.name, subject: session })
  }
}

/** Session members of the event data. */
export function sessionData(
  session: Pick<SessionInfo, 'id' | 'name' | 'type' | 'agentName' | 'workspaceId'> & Partial<SessionInfo>,
  workspace: Workspace | undefined,
) {
  return {
    session_id: session.id,
    name: session.name,
    type: session.type,
    agent_name: session.agentName,
    workspace: workspace?.rootDir ?? '',
    workspace_id: session.workspaceId,
    state: session.state ?? '',
    acp_session_id: session.acpSessionId ?? '',
    created_at: session.createdAt === undefined ? '' : iso(session.createdAt),
    updated_at: session.updatedAt === undefined ? '' : iso(session.updatedAt),
  }
}

const observationEnvelope = ({ payload: { event, source, data }, scope }: StoredEvent<Observation>): Envelope => ({
  kind: event,
  source,
  ...placeOf(scope),
  data,
})

/** The logged event behind a trigger event; undefined when it is not logged. */
export function sourceOf(event: string): string | undefined {
  if (event === SessionCreated.name || event === SessionStopped.name) return event
  if (event.startsWith('automation.run.')) return RunEnded.name
  return /^(?:ext|hook)\./.test(event) ? Observation.name : undefined
}
