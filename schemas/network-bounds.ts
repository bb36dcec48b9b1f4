/** Comparison of network participation requests. */
import { durationMs } from './duration.js'
import type { ParticipationBounds, ParticipationRequest } from './network.js'

/** A bound as a number: a count, or milliseconds; NaN for an invalid duration. */
export const boundAmount = (value: number | string): number =>
  typeof value === 'number' ? value : (durationMs(value) ?? Number.NaN)

/**
 * The first bound that is wider than before or not comparable; undefined: none. A longer window is narrower, because it allows
 * fewer wakes.
 */
export function widenedBound(
  before: ParticipationBounds,
  after: ParticipationBounds,
): keyof ParticipationBounds | undefined {
  return (Object.keys(after) as (keyof ParticipationBounds)[]).find(name => {
    const [had, has] = [boundAmount(before[name] ?? Number.NaN), boundAmount(after[name] ?? Number.NaN)]
    return name === 'coalesce_window' ? !(has >= had) : !(has <= had)
  })
}

/** Whether a request asks for more than the previous one. An omitted bound keeps its value. */
export function isWider(request: ParticipationRequest, before: ParticipationRequest): boolean {
  if (request.mode !== 'live') return false
  if (before.mode !== 'live' || channelOf(before) !== channelOf(request)) return true
  return widenedBound(before.bounds ?? {}, request.bounds ?? {}) !== undefined
}

const channelOf = (request: Extract<ParticipationRequest, { mode: 'live' }>): string =>
  request.channel_strategy === 'named' ? `named ${request.channel_id}` : request.channel_strategy
