import type { WaitSessionBody, WaitSessionReply } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import { goalOf } from '../goal/goal.js'
import type { SessionRow } from '../table.js'
import type { LiveSession } from './live-session.js'

const MAX_WAIT_MS = 10 * 60_000

/** Possible targets of a wait: the states of a session, and `active` split by whether a turn runs. */
const TARGETS = ['starting', 'active', 'stopping', 'stopped', 'idle', 'prompting'] as const
type Target = (typeof TARGETS)[number]

/** Default targets: the session has nothing left to do. */
const DEFAULT: readonly Target[] = ['idle', 'stopped']

/** Resolves when the session is in one of the states, or the time is over; `resume_id` continues an earlier wait. */
export async function waitForSession(
  { kernel, logs, prompts }: SessionsContext,
  row: SessionRow,
  readState: () => { readonly row: SessionRow | undefined; readonly live: LiveSession | undefined },
  body: WaitSessionBody,
  caller: AbortSignal,
): Promise<WaitSessionReply> {
  const { clock } = kernel
  if (body.timeout_ms < 0 || body.timeout_ms > MAX_WAIT_MS) {
    throw SessionErrors.wait_invalid(`timeout_ms is 0 to ${MAX_WAIT_MS}`)
  }
  if (body.epoch !== undefined && body.epoch !== row.epoch) {
    throw SessionErrors.wait_outdated(`the transcript of this session was replaced: its epoch is ${row.epoch}`)
  }
  const until = body.resume_id === undefined ? checked(body.until) : resumed(body.resume_id, row.id)
  const startedAt = clock.monotonic()
  return logs.use(row.id, async log => {
    const over = new AbortController()
    const timer = clock.timeout(body.timeout_ms, () => over.abort(), { unref: true })
    const signal = AbortSignal.any([over.signal, caller, kernel.scope.signal])
    try {
      for (;;) {
        const now = readState()
        if (!now.row) throw SessionErrors.session_not_found(`no session ${row.id}`)
        const { state } = now.row
        // Between two turns of a queue or of a goal no turn runs.
        const isPursued = goalOf(now.row)?.status === 'active'
        const isBusy = now.live?.turn !== undefined || prompts.queued(row.id).length > 0 || isPursued
        const within: Target = state === 'active' ? (isBusy ? 'prompting' : 'idle') : state
        const reached = until.includes(state) || until.includes(within)
        if (reached || signal.aborted) {
          return {
            outcome: reached ? 'reached' : 'timeout',
            session_id: row.id,
            state: within,
            until: [...until],
            revision: log.last,
            waited_ms: Math.round(clock.monotonic() - startedAt),
            ...(!reached && { resume_id: resumeId(row.id, until) }),
          }
        }
        await log.changed(log.last, signal)
      }
    } finally {
      timer.cancel()
    }
  })
}

function checked(until: readonly string[] | undefined): readonly Target[] {
  if (until === undefined || until.length === 0) return DEFAULT
  const unknown = until.find(name => !TARGETS.includes(name as Target))
  if (unknown !== undefined)
    throw SessionErrors.wait_target_unknown(`until: ${unknown} is none of ${TARGETS.join(', ')}`)
  return until as readonly Target[]
}

function resumeId(session: string, until: readonly Target[]): string {
  return `${session}.${until.join('+')}`
}

function resumed(id: string, session: string): readonly Target[] {
  const [of, names = ''] = id.split('.')
  if (of !== session) throw SessionErrors.wait_gone('this resume_id belongs to another session, or to none')
  return checked(names.split('+'))
}
