import { iso, type PluginKernel } from '../../../kernel/plugin.js'
import type { Events, StoredEvent } from '../../events/api.js'
import { SessionCreated, type SessionInfo, SessionStopped, type Sessions } from '../../sessions/api.js'
import type { Workspace, Workspaces } from '../../workspaces/api.js'
import { type HookAsked, Observation, RunEnded } from '../api.js'
import type { RunRow } from '../runs/run-row.js'
import type { RunStore } from '../runs/runs.js'
import { AskedByHooks } from './asked.js'
import { type Envelope, placeOf } from './envelope.js'
import { matches } from './match.js'
import type { TriggerRecord } from './trigger-kind.js'
import type { Triggers } from './triggers.js'

/** Causes that are followed to find the run that led to an event. */
const MAX_CAUSES = 64

type Kernel = PluginKernel<{ events: typeof Events; sessions: typeof Sessions; workspaces: typeof Workspaces }>

/** What the log says of a session. */
interface SessionTold {
  readonly id: string
  readonly agent_name: string
  readonly workspace_id: string
  readonly stop_reason?: string
  readonly stop_detail?: string
}

/** Reads events of the log as triggers see them. */
export class Observed {
  readonly asked: AskedByHooks

  constructor(
    private readonly kernel: Kernel,
    private readonly triggers: Triggers,
    private readonly runs: RunStore,
  ) {
    this.asked = new AskedByHooks(kernel, whom => this.#depthBehind(whom))
  }

  /** In the order of their ids. */
  matching(envelope: Envelope): TriggerRecord[] {
    return this.triggers
      .about(envelope.kind, envelope.workspaceId)
      .filter(trigger => this.triggers.enabled(trigger) && matches(trigger, envelope))
  }

  /** What happened; undefined for an event that no trigger is about. */
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

  /** The end of a run; one that was canceled fires nothing. */
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

  /** How many runs of triggers led to an event, one by the other, by the chain of its causes. */
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
      const asked = before || cause === undefined ? 0 : this.asked.depthOf(cause)
      if (asked > 0) return asked
      // What a session does follows from what made it.
      at = before ?? (actor.kind === 'session' ? this.#madeBy(actor.id) : undefined)
    }
    return 0
  }

  /** The same of what a hook is run for. */
  #depthBehind({ sessionId, cause }: HookAsked['whoms'][number]): number {
    const run = sessionId ? this.runs.ofSession(sessionId) : undefined
    if (run && run.trigger_id !== null) return run.depth
    const event = cause === undefined ? undefined : this.kernel.needs.events.find(cause)
    const made = sessionId ? this.#madeBy(sessionId) : undefined
    return Math.max(
      event ? this.depthOf(event) : cause === undefined ? 0 : this.asked.depthOf(cause),
      made ? this.depthOf(made) : 0,
    )
  }

  #madeBy(session: string): StoredEvent | undefined {
    return this.kernel.needs.events.latest({ name: SessionCreated.name, subject: session })
  }
}

/** What triggers see of a session. */
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

/** The name of the events of the log that an event of triggers is made of; undefined for one that is not in the log. */
export function sourceOf(event: string): string | undefined {
  if (event === SessionCreated.name || event === SessionStopped.name) return event
  if (event.startsWith('automation.run.')) return RunEnded.name
  return /^(?:ext|hook)\./.test(event) ? Observation.name : undefined
}
