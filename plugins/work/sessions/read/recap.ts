import { createHash } from 'node:crypto'
import { clip } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { ListCommandsReply, RecapReply, Session } from '../../../../schemas/sessions.js'
import type { SessionsContext } from '../context.js'
import type { StoredSessionEvent } from '../events.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { SessionRow } from '../table.js'
import { activeRunOf } from './session-run.js'
import { readPage } from './transcript.js'

const DEFAULT_MESSAGES = 6
const MAX_MESSAGES = 50
/** Maximum number of markers per kind. */
const MARKERS = 5
const MARKER_TYPES = [
  'runtime_warning',
  'error',
  'transcript_marker.created',
  'session.compaction_fired',
  'session_stopped',
] as const
const MAX_SUMMARY = 300

/** A summary for a person who returns to a session. */
export async function recapOf(
  { kernel, logs, prompts }: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  session: Session,
  limit = DEFAULT_MESSAGES,
): Promise<RecapReply['recap']> {
  const running = live?.binding.running
  return logs.use(row.id, async log => {
    await log.digested(row.usage)
    const page = await readPage(log, Math.min(limit || DEFAULT_MESSAGES, MAX_MESSAGES))
    const markers: StoredSessionEvent[] = []
    for (const type of MARKER_TYPES) markers.push(...(await log.query({ type, limit: MARKERS }, row.usage)))
    markers.sort((a, b) => b.sequence - a.sequence)
    return {
      session,
      active_run: activeRunOf(kernel, row.id),
      pending_inputs: prompts.queued(row.id).length,
      pending_markers: (running?.permissions.pending.length ?? 0) + (running?.clarifications.pending.length ?? 0),
      recent_messages: page.entries.map(({ message }) => message),
      recent_markers: markers.slice(0, MARKERS).map(event => ({
        kind: String(event.content.warning ?? event.content.marker ?? event.type),
        occurred_at: iso(event.at),
        summary: clip(summaryOf(event), MAX_SUMMARY),
        ...(event.failure && { diagnostic: { code: event.failure.kind, message: event.failure.summary } }),
        evidence: { sequence: event.sequence, ...(event.turnId && { turn_id: event.turnId }) },
      })),
      snapshot: {
        consistency: log.damage ? 'damaged' : 'consistent',
        event_cursor: log.last,
        generated_at: iso(kernel.clock.now()),
        queue_generation: prompts.generation(row.id),
        transcript_cursor: page.maxSequence,
      },
    }
  })
}

function summaryOf({ content, failure, stopReason, stopDetail }: StoredSessionEvent): string {
  const text = content.text ?? content.error ?? failure?.summary ?? content.detail
  if (typeof text === 'string') return text
  return [stopReason ?? content.marker, stopDetail].filter(part => typeof part === 'string').join(': ')
}

/** The slash commands of a session's agent, which are known only while it runs. */
export function commandsOf(row: SessionRow, live: LiveSession | undefined): ListCommandsReply {
  const offered = live?.binding.updates.commands ?? []
  const isRunning = live?.binding.running !== undefined
  const commands = offered.map(({ name, description, input }) => ({
    id: `agent:${name}`,
    canonical_token: `/${name}`,
    display_name: name,
    description,
    ...(input && { input_hint: input.hint }),
    lane: 'agent',
    placements: ['prompt'],
    source: { kind: 'agent', scope: 'session', id: row.agent_name },
    available: isRunning,
    ...(!isRunning && { unavailable_reason: 'the agent has no process' }),
  }))
  return { commands, revision: createHash('sha256').update(JSON.stringify(commands)).digest('hex').slice(0, 16) }
}
