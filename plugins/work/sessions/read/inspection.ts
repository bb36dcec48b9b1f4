import * as v from 'valibot'
import { iso } from '../../../../kernel/plugin.js'
import { questionMembers } from '../../../../schemas/sessions/questions.js'
import type { PendingInteraction } from '../../../../schemas/sessions/runtime.js'
import type {
  InspectSessionReply,
  InteractionStatus,
  RepairSessionQuery,
  RepairSessionReply,
  SessionUsageReply,
} from '../../../../schemas/sessions.js'
import { AcpErrors, wholeDiffs } from '../../acp/api.js'
import { SessionErrors, WakeSources } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { StoredSessionEvent } from '../events.js'
import { usageToWire } from '../journal/usage.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import { closeTurn, findGaps } from '../lifecycle/repair.js'
import type { SessionRow } from '../table.js'
import { healthToWire } from '../wire.js'

const MAX_INTERACTIONS = 200
const DECISIONS = ['allow-once', 'allow-always', 'reject-once', 'reject-always']

type Repair = RepairSessionReply['repair']

/** Tokens and cost, as far as the agent reports them. */
export async function usageOf({ logs }: SessionsContext, row: SessionRow): Promise<SessionUsageReply['usage']> {
  return usageToWire((await logs.use(row.id, log => log.digested(row.usage))).usage)
}

/** The newest questions of an agent to a person, ascending; automatic decisions of a mode are no questions. */
export async function interactionsOf(
  { logs }: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  status?: InteractionStatus | undefined,
): Promise<PendingInteraction[]> {
  const waiting = new Set(live?.binding.running?.permissions.pending.map(({ requestId }) => requestId))
  return logs.use(row.id, async log => {
    const answers = new Map<string, StoredSessionEvent>()
    const found: PendingInteraction[] = []
    for await (const event of log.backwardsOf('permission', row.usage)) {
      if (found.length >= MAX_INTERACTIONS) break
      const id = String(event.content.request_id)
      if (event.content.status === 'pending') {
        const interaction = interactionOf(event, answers.get(id), waiting.has(id))
        if (status === undefined || interaction.status === status) found.push(interaction)
        answers.delete(id)
      } else answers.set(id, event)
    }
    return found.reverse()
  })
}

/** One question, in full while it is pending. Throws `permission_not_found` (404). */
export async function interactionIn(
  context: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  id: string,
): Promise<PendingInteraction> {
  const whole = wholeInteraction(context, live, id)
  if (whole) return whole
  const found = (await interactionsOf(context, row, live)).find(({ interaction_id }) => interaction_id === id)
  if (!found) throw AcpErrors.permission_not_found(`no question ${id} in this session`)
  return found
}

/** A pending question in full; undefined without a pending question of that ID. */
function wholeInteraction(
  { kernel }: SessionsContext,
  live: LiveSession | undefined,
  id: string,
): PendingInteraction | undefined {
  const pending = live?.binding.running?.permissions.pending.find(({ requestId }) => requestId === id)
  if (!pending) return undefined
  const { question, turnId, createdAt } = pending
  const { title, kind, command, paths, outside, diffs } = question
  return kernel.redact.value({
    interaction_id: id,
    provider_request_id: id,
    kind: 'permission',
    tool_kind: kind,
    title,
    turn_id: turnId,
    decisions: DECISIONS,
    status: 'pending',
    created_at: iso(createdAt),
    ...(command !== undefined && { command }),
    paths: [...paths],
    ...(outside.length > 0 && { outside: [...outside] }),
    ...(diffs.length > 0 && { diffs: wholeDiffs(diffs) }),
  })
}

/** The description of a question in the journal; absent in journals of earlier versions. */
function askedIn({ content }: StoredSessionEvent): Partial<PendingInteraction> {
  const found = v.safeParse(v.object(questionMembers), content)
  return { ...(typeof content.kind === 'string' && { tool_kind: content.kind }), ...(found.success && found.output) }
}

function interactionOf(
  question: StoredSessionEvent,
  answer: StoredSessionEvent | undefined,
  waits: boolean,
): PendingInteraction {
  const id = String(question.content.request_id)
  const decision = answer && String(answer.content.decision)
  return {
    interaction_id: id,
    provider_request_id: id,
    kind: 'permission',
    title: String(question.content.title ?? ''),
    turn_id: question.turnId,
    decisions: DECISIONS,
    ...askedIn(question),
    status: answer ? endOf(answer) : waits ? 'pending' : 'orphaned',
    created_at: iso(question.at),
    ...(decision && { resolution: decision, resolved_by: String(answer.content.resolved_by) }),
    ...(answer && { resolved_at: iso(answer.at) }),
  }
}

function endOf({ content }: StoredSessionEvent): InteractionStatus {
  if (content.resolved_by === 'timeout') return 'timed_out'
  return content.decision === 'cancelled' ? 'canceled' : 'resolved'
}

/** The state of a session and of its wake sources. */
export async function inspectionOf(
  { kernel }: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  withWakeEvents: boolean,
): Promise<InspectSessionReply> {
  const [wakes] = kernel.collect(WakeSources)
  return {
    session_id: row.id,
    health: healthToWire(row, live),
    diagnostics: [],
    wake_state: null,
    ...(withWakeEvents && { wake_events: [] }),
    ...(await wakes?.entry.read(row.id, withWakeEvents)),
  }
}

/**
 * Finds the missing events of a session's transcript, and appends them unless only a report is wanted. A session that is not
 * stopped needs `force`, which also works during a turn.
 */
export async function repairTranscript(
  { logs }: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  { dry_run: dryRun = false, force = false }: RepairSessionQuery,
): Promise<Repair> {
  const nothing = { session_id: row.id, actions: [], persisted: false }
  const active = (detail: string) => ({ ...nothing, issues: [{ code: 'session_active', severity: 'info', detail }] })
  if (live?.turn) return active('a turn runs: what is open may still end')
  if (row.state !== 'stopped' && !(force && row.state === 'active')) {
    return active(
      `the session is ${row.state}: what is open may still end${row.state === 'active' ? '; force looks at it nevertheless' : ''}`,
    )
  }
  return logs
    .use(row.id, async (log): Promise<Repair> => {
      if (log.damage) throw SessionErrors.session_journal_damaged(log.damage.message)
      const { last } = log
      const left = await findGaps(log)
      if (log.last !== last || live?.turn) return active('a turn began meanwhile')
      const turn_id = left.turnId ?? ''
      const persisted = !dryRun
      const actions = [
        ...left.calls.map(({ id, title }) => ({
          code: 'tool_result_appended',
          persisted,
          tool_call_id: id,
          tool_name: title,
          turn_id,
        })),
        ...(left.turnId === undefined ? [] : [{ code: 'turn_ended', persisted, turn_id }]),
      ]
      if (actions.length === 0) return { ...nothing, issues: [] }
      if (persisted) {
        closeTurn(log, left, { reason: row.stop_reason ?? 'error', detail: 'repaired on demand' })
        await log.sync()
      }
      const issues = [{ code: 'turn_without_end', severity: 'warning', turn_id }]
      return { session_id: row.id, actions, issues, persisted }
    })
    .catch(error => {
      if (error?.code !== 'session_journal_damaged') throw error
      return { ...nothing, issues: [{ code: error.code, severity: 'error', detail: error.message }] }
    })
}
