import { positionOf } from '../../../../kernel/kit/feed.js'
import type { Clock, EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import type { SessionEvent } from '../../../../schemas/sessions.js'
import { eventToWire, type StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import { readPage } from './transcript.js'
import { TranscriptFeed } from './transcript-feed.js'

const DEFAULT_ENTRIES = 50
const MAX_ENTRIES = 200
/** Each frame contains the whole entry, so a long growing entry gets fewer versions. Bytes per millisecond of pause. */
const BYTES_PER_MS = 2000
const LONGEST_PAUSE_MS = 1000

/** Position and filter of a reader. */
export interface StreamRequest {
  readonly lastEventId: string | undefined
  readonly afterSequence: number | undefined
  readonly epoch: number | undefined
  readonly generation: number | undefined
  readonly limit: number | undefined
}

/** The data source of a stream. */
export interface StreamSource {
  readonly log: SessionLog
  readonly clock: Clock
  /** Read anew with each call; undefined when the session was deleted. */
  row(): SessionRow | undefined
  /** Resolves when the disk has all that was committed. */
  durable(): Promise<void>
  readonly signal: AbortSignal
}

/** Reason for which a reader gets a new snapshot instead of the following events. */
export type ResetReason = 'fence_missing' | 'epoch_mismatch' | 'generation_mismatch' | 'sequence_reset'

/** The transcript: a snapshot, then new and changed entries; `id` is the sequence up to which the reader is complete. */
export async function* transcriptFrames(
  source: StreamSource,
  request: StreamRequest,
): AsyncGenerator<Frame | EncodedFrame> {
  const { log, signal, clock } = source
  let first = source.row()
  if (!first) return
  const resume = cursorOf(request)
  let reason = resume === undefined ? undefined : resetReason(request, resume, first, log)
  let cursor = resume ?? 0
  if (resume === undefined || reason) {
    const snapshot = await snapshotFrame(first, log, request.limit, reason)
    cursor = snapshot.data.max_sequence
    yield snapshot
  }
  let reader = TranscriptFeed.of(log).reader(cursor)
  for (;;) {
    const delta = await reader.next(identityOf(first, log))
    if (signal.aborted) return
    if (delta) {
      cursor = delta.cursor
      if (delta.frame) {
        yield delta.frame
        const pause = Math.min(LONGEST_PAUSE_MS, delta.frame.byteLength / BYTES_PER_MS)
        if (pause >= 5) await clock.sleep(pause, signal).catch(() => {})
      }
    }
    const row = source.row()
    if (!row || signal.aborted) return
    if (row.epoch !== first.epoch) {
      first = row
      reason = 'epoch_mismatch'
      const snapshot = await snapshotFrame(row, log, request.limit, reason)
      cursor = snapshot.data.max_sequence
      reader = TranscriptFeed.of(log).reader(cursor)
      yield snapshot
      continue
    }
    if (row.state === 'stopped' && log.last <= cursor) {
      yield await stoppedFrame(log, row)
      return
    }
    await log.changed(cursor, signal)
  }
}

/** The end of the transcript, with the reason for a reset of the reader. */
async function snapshotFrame(row: SessionRow, log: SessionLog, limit: number | undefined, reason?: ResetReason) {
  await log.digested(row.usage)
  const page = await readPage(log, Math.min(limit || DEFAULT_ENTRIES, MAX_ENTRIES))
  const data = {
    ...identityOf(row, log),
    entries: page.entries,
    has_older: page.hasOlder,
    ...(page.nextBefore !== undefined && { next_before_sequence: page.nextBefore }),
    max_sequence: page.maxSequence,
    reset: reason !== undefined,
    ...(reason && { reason }),
  }
  return { id: String(page.maxSequence), event: 'transcript_snapshot', data }
}

/** The position of the reader; undefined on its first request. */
export function cursorOf({ lastEventId, afterSequence }: StreamRequest): number | undefined {
  return positionOf(lastEventId) ?? afterSequence
}

function resetReason(
  request: StreamRequest,
  cursor: number,
  row: SessionRow,
  log: SessionLog,
): ResetReason | undefined {
  if (request.epoch === undefined || request.generation === undefined) return 'fence_missing'
  return fence(request, row, log) ?? (cursor > log.last ? 'sequence_reset' : undefined)
}

/** Compares the epoch and generation that the reader knows with the current ones. */
export function fence(request: StreamRequest, row: SessionRow, log: SessionLog): ResetReason | undefined {
  if (request.epoch !== undefined && request.epoch !== row.epoch) return 'epoch_mismatch'
  if (request.generation !== undefined && request.generation !== log.generation) return 'generation_mismatch'
  return undefined
}

function identityOf(row: SessionRow, log: SessionLog) {
  return {
    session_id: row.id,
    workspace_id: row.workspace_id,
    workspace_path: row.workspace_path,
    epoch: row.epoch,
    generation: log.generation,
  }
}

/** The last frame: the stored end if the journal has one, else one built from the row. */
export async function stoppedFrame(log: SessionLog, row: SessionRow): Promise<Frame> {
  const [last] = await log.read(log.last, 1)
  const stored: StoredSessionEvent =
    last?.type === 'session_stopped'
      ? last
      : {
          sequence: log.last,
          id: `evt_${log.last.toString(16).padStart(16, '0')}`,
          type: 'session_stopped',
          turnId: '',
          at: row.updated_at,
          content: { reason: row.stop_reason, synthetic: true },
          stopReason: row.stop_reason ?? undefined,
          stopDetail: row.stop_detail ?? undefined,
        }
  const data: SessionEvent = eventToWire(stored, row)
  return { id: String(log.last), event: 'session_stopped', data }
}
