import { iso } from '../../../../kernel/plugin.js'
import type { DrainBody, DrainReply } from '../../../../schemas/tasks.js'
import { SchedulerDrainCompleted, SchedulerDrainStarted } from '../api.js'
import type { TaskCore } from '../core.js'
import { invalid } from '../tasks/write.js'
import type { Who } from '../who.js'
import type { SchedulerState } from './state.js'

const DEFAULT_S = 60
const MOST_S = 3600
/** Poll interval for active claims, in milliseconds. */
const LOOK_MS = 250

/** Pauses claims and waits until no claim is active. The scheduler stays paused, also after a timeout. */
export async function drainScheduler(
  core: TaskCore,
  state: SchedulerState,
  who: Who,
  { reason, timeout_seconds: seconds }: DrainBody,
  signal: AbortSignal,
): Promise<DrainReply> {
  const limit = seconds ?? DEFAULT_S
  if (limit < 0 || limit > MOST_S) throw invalid(`timeout_seconds: must be between 0 and ${MOST_S}, not ${limit}`)
  const { clock, needs } = core.kernel
  const [started, startedAt] = [core.now(), clock.monotonic()]
  const tell = (type: typeof SchedulerDrainStarted) =>
    core.write(who, t => needs.events.emit(t, type, { remaining_claims: state.activeClaims() }, { actor: who.actor }))
  await state.pause(who, reason)
  await tell(SchedulerDrainStarted)
  while (state.activeClaims() > 0 && clock.monotonic() - startedAt < limit * 1000 && !signal.aborted)
    await clock.sleep(LOOK_MS, signal).catch(() => {})
  const remaining = state.activeClaims()
  if (remaining === 0) await tell(SchedulerDrainCompleted)
  return {
    completed: remaining === 0,
    completed_at: iso(core.now()),
    remaining_claims: remaining,
    scheduler: state.toWire(),
    started_at: iso(started),
    timed_out: remaining > 0,
  }
}
