import { clip } from '../../../../kernel/kit/text.js'
import type { RewindBody, RewindSessionReply } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import type { Prompting } from '../turn/prompting.js'
import { ChangedFiles } from './changed-files.js'

type Rewind = RewindSessionReply['rewind']

/** The last rewind of a session, so that a repetition is recognised. */
interface Remembered {
  readonly key: string
  readonly message: string
  readonly answer: Rewind
}

/** The dependencies of a rewind. */
export interface Rewinding {
  readonly context: SessionsContext
  readonly prompting: Pick<Prompting, 'whileIdle'>
  /** Ends the process of a session, if it has one, because its memory no longer matches the conversation. */
  endProcess(id: string): Promise<void>
}

/**
 * Removes everything from a prompt on out of the conversation, for readers and for the agent, whose next process gets the rest.
 * Files are not changed, only reported. A repetition with the same key gets the earlier reply.
 * @throws Fault `session_busy`, `transcript_changed`, `rewind_conflict` (409), `message_not_found` (404)
 */
export async function rewind(rewinding: Rewinding, id: string, body: RewindBody): Promise<Rewind> {
  const { context, prompting } = rewinding
  const replayed = replayOf(context.table.get(id), body)
  if (replayed) return replayed
  return prompting.whileIdle(id, async () => {
    const row = context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    return (
      replayOf(row, body) ??
      context.logs.use(id, async log => {
        await log.sync()
        fence(row, log, body)
        const target = await findPrompt(log, row, body.message_id)
        const { files, events } = await readRemoved(log, target.sequence)
        const through = log.end
        const answer: Rewind = {
          target_message_id: target.id,
          draft_text: String(target.content.text ?? ''),
          archived_event_count: events,
          archived_from_sequence: target.sequence,
          archived_through_sequence: through,
          changed_files: files.list(),
          generation: log.generation,
          max_sequence: through + 1,
          transcript_epoch: row.epoch + 1,
          replayed: false,
        }
        const remembered: Remembered = { key: body.idempotency_key, message: body.message_id, answer }
        await cut(rewinding, row, log, target.sequence, 'rewound', JSON.stringify(remembered))
        return answer
      })
    )
  })
}

/** Empties the conversation; the next agent process begins without one. Throws `session_busy` (409). */
export async function clear(rewinding: Rewinding, id: string): Promise<void> {
  const { context, prompting } = rewinding
  await prompting.whileIdle(id, async () => {
    const row = context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    await context.logs.use(id, log => cut(rewinding, row, log, 1, 'cleared', null))
  })
}

/** Updates the row before the journal: a crash in between loses only the marker event. */
async function cut(
  { context: { kernel, table }, endProcess }: Rewinding,
  row: SessionRow,
  log: SessionLog,
  from: number,
  marker: 'rewound' | 'cleared',
  rewound: string | null,
): Promise<void> {
  if (log.damage) throw SessionErrors.session_journal_damaged(log.damage.message)
  await endProcess(row.id)
  await log.sync()
  const cuts = log.end >= from ? log.cuts.with(from, log.end) : log.cuts
  const epoch = row.epoch + 1
  await kernel.db.tx(t =>
    table.update(t, row.id, {
      epoch,
      rewound,
      cuts: cuts.none ? null : cuts.toString(),
      acp_session_id: null,
      updated_at: kernel.clock.now(),
    }),
  )
  log.cuts = cuts
  log.append({ type: 'transcript_marker.created', turnId: '', content: { marker, epoch } }, { sync: true })
  await log.sync()
  log.wake()
}

function replayOf(row: SessionRow | undefined, body: RewindBody): Rewind | undefined {
  const last = row?.rewound ? (JSON.parse(row.rewound) as Remembered) : undefined
  if (last?.key !== body.idempotency_key) return undefined
  if (last.message !== body.message_id) throw SessionErrors.rewind_conflict()
  return { ...last.answer, replayed: true }
}

function fence(row: SessionRow, log: SessionLog, body: RewindBody): void {
  const differs = (name: string, expected: number | null, is: number) => {
    if (expected !== null && expected !== is)
      throw SessionErrors.transcript_changed(`the ${name} is ${is}, not ${expected}`)
  }
  differs('epoch', body.expected_epoch, row.epoch)
  differs('generation', body.expected_generation, log.generation)
  differs('newest sequence', body.expected_max_sequence, log.end)
}

/** Finds a prompt by its entry ID in the transcript, or by its message ID. */
async function findPrompt(log: SessionLog, row: SessionRow, message: string): Promise<StoredSessionEvent> {
  for await (const event of log.backwardsOf('user_message', row.usage)) {
    if (event.id === message || event.content.message_id === message) return event
  }
  throw SessionErrors.message_not_found(`no prompt ${clip(message, 100)} in this conversation`)
}

async function readRemoved(log: SessionLog, from: number) {
  const files = new ChangedFiles()
  let events = 0
  for await (const event of log.range(from)) {
    events++
    files.take(event)
  }
  return { files, events }
}
