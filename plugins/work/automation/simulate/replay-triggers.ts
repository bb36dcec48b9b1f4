import type { StoredEvent } from '../../../platform/events/api.js'
import type { Limits } from '../runs/room.js'
import { promptOf } from '../triggers/fires.js'
import type { Observed } from '../triggers/observed.js'
import type { TriggerRecord } from '../triggers/trigger-kind.js'
import { SimulatedClock } from './simulated-clock.js'
import { type Occasion, type Player, SimulatedRuns } from './simulated-runs.js'

export interface Replay {
  /** Oldest first. */
  readonly events: AsyncIterable<StoredEvent>
  readonly observed: Observed
  readonly limits: Limits
  readonly player: (trigger: TriggerRecord) => Player
}

/** Applies the current triggers to recorded events; returns the number of events. */
export async function replayTriggers(
  { events, observed, limits, player }: Replay,
  report: (occasion: Occasion) => void,
  stops: () => boolean,
): Promise<number> {
  let clock: SimulatedClock | undefined
  let runs: SimulatedRuns | undefined
  let eventCount = 0
  for await (const event of events) {
    if (stops()) break
    eventCount++
    const envelope = observed.envelopeOf(event)
    const triggers = envelope ? observed.matching(envelope) : []
    if (!envelope || triggers.length === 0) continue
    clock ??= new SimulatedClock(event.at)
    runs ??= new SimulatedRuns(clock, limits, report)
    await clock.runTo(event.at, stops)
    const depth = observed.depthOf(event) + 1
    for (const trigger of triggers) {
      const one = player(trigger)
      const skip = promptOf(trigger, envelope, depth).skip ?? runs.skip(one)
      runs.claim(one, { attempt: 1, skip, event: { name: event.name, seq: event.seq } })
    }
  }
  // Retries of the last runs.
  await clock?.runTo(Number.POSITIVE_INFINITY, stops)
  return eventCount
}
