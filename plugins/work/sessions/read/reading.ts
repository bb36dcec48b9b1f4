import type { EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import type {
  ListSessionEventsQuery,
  SessionEvent,
  SessionStreamQuery,
  SessionTurn,
  TranscriptQuery,
  TranscriptReply,
} from '../../../../schemas/sessions.js'
import type { SessionsContext } from '../context.js'
import { eventToWire } from '../events.js'
import type { SessionRow } from '../table.js'
import { RawFrames } from './raw-frames.js'
import { transcriptFrames } from './stream.js'
import { readPage } from './transcript.js'

const DEFAULT_EVENTS = 200
const MAX_EVENTS = 1000
const DEFAULT_ENTRIES = 50
const MAX_ENTRIES = 200

/** The newest matching stored events, ascending. */
export async function readEvents(
  { logs }: SessionsContext,
  row: SessionRow,
  query: ListSessionEventsQuery,
): Promise<SessionEvent[]> {
  if (query.agent_name !== undefined && query.agent_name !== row.agent_name) return []
  const found = await logs.use(row.id, log =>
    log.query(
      {
        type: query.type,
        turnId: query.turn_id,
        since: query.since === undefined ? undefined : Date.parse(query.since),
        afterSequence: query.after_sequence,
        limit: Math.min(query.limit || DEFAULT_EVENTS, MAX_EVENTS),
      },
      row.usage,
    ),
  )
  return found.map(event => eventToWire(event, row))
}

/** Events by turn, in the order in which the turns began; events outside of turns have an empty turn ID. */
export function groupByTurn(events: readonly SessionEvent[]): SessionTurn[] {
  const turns = new Map<string, SessionEvent[]>()
  for (const event of events) {
    const turn = turns.get(event.turn_id)
    if (turn) turn.push(event)
    else turns.set(event.turn_id, [event])
  }
  return [...turns].map(([turn_id, of]) => ({ turn_id, events: of }))
}

/** One page of the transcript: the newest entries before a sequence. */
export async function readTranscript(
  { logs }: SessionsContext,
  row: SessionRow,
  query: TranscriptQuery,
): Promise<TranscriptReply> {
  const limit = Math.min(query.limit || DEFAULT_ENTRIES, MAX_ENTRIES)
  return logs.use(row.id, async log => {
    await log.digested(row.usage)
    const page = await readPage(log, limit, query.before_sequence)
    return {
      entries: page.entries,
      epoch: row.epoch,
      generation: log.generation,
      has_older: page.hasOlder,
      limit,
      max_sequence: page.maxSequence,
      ...(page.nextBefore !== undefined && { next_before_sequence: page.nextBefore }),
    }
  })
}

/** Frames of a session's stream; the journal stays open until the reader disconnects. */
export async function openStream(
  { kernel, logs, table }: SessionsContext,
  row: SessionRow,
  query: SessionStreamQuery,
  lastEventId: string | undefined,
  caller: AbortSignal,
): Promise<AsyncIterable<Frame | EncodedFrame>> {
  const { log, release } = await logs.hold(row.id)
  const signal = AbortSignal.any([caller, kernel.scope.signal])
  const source = { log, clock: kernel.clock, row: () => table.get(row.id), durable: () => kernel.db.durable(), signal }
  const request = {
    lastEventId,
    afterSequence: query.after_sequence,
    epoch: query.epoch,
    generation: query.generation,
    limit: query.limit,
  }
  const frames = query.frames === 'raw' ? new RawFrames(source, request) : transcriptFrames(source, request)
  // The signal aborts at each end of the stream. A reader that disconnects before its first frame never runs the generator.
  if (signal.aborted) release()
  signal.addEventListener('abort', release, { once: true })
  return frames
}
