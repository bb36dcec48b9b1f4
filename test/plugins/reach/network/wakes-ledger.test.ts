import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { exhaustedBy, reservationOf, type Spent } from '../../../../plugins/reach/network/wakes/ledger.js'
import { TRANSITIONS, type WakeState } from '../../../../plugins/reach/network/wakes/table.js'
import { Tale } from '../../../../plugins/reach/network/wakes/tale.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'

test('a reservation is positive and within the remaining budget for any cost of wakes', () =>
  forSeeds(200, async seed => {
    const dice = new Dice(seed)
    const below = (most: number) => dice.upTo(most)
    const bounds = {
      ...{ maxWakeDepth: 3, coalesceWindow: 500 },
      maxWakes: 1 + below(64),
      maxWakeWallTime: 1 + below(900_000),
      maxTotalWallTime: 1 + below(7_200_000),
      maxInputTokens: 1 + below(1_000_000),
      maxOutputTokens: 1 + below(200_000),
    }
    const charges: Omit<Spent, 'wakes'>[] = []
    const spent = (): Spent =>
      charges.reduce<Spent>(
        (sum, one) => ({
          wakes: sum.wakes + 1,
          wallMs: sum.wallMs + one.wallMs,
          inputTokens: sum.inputTokens + one.inputTokens,
          outputTokens: sum.outputTokens + one.outputTokens,
        }),
        { wakes: 0, wallMs: 0, inputTokens: 0, outputTokens: 0 },
      )
    for (let step = 0; step < 100 && !exhaustedBy(spent(), bounds); step++) {
      const before = spent()
      const reserved = reservationOf(before, bounds)
      for (const amount of Object.values(reserved)) assert.ok(Number.isInteger(amount) && amount > 0, `seed ${seed}`)
      assert.ok(before.wallMs + reserved.wallMs <= bounds.maxTotalWallTime, `seed ${seed}`)
      assert.ok(before.inputTokens + reserved.inputTokens <= bounds.maxInputTokens, `seed ${seed}`)
      assert.ok(before.outputTokens + reserved.outputTokens <= bounds.maxOutputTokens, `seed ${seed}`)
      const way = below(3)
      if (way === 0) charges.push(reserved)
      // A turn can cost more than was reserved: agents tell it afterwards.
      else if (way === 1)
        charges.push({ ...reserved, wallMs: below(2 * reserved.wallMs), inputTokens: below(3 * reserved.inputTokens) })
    }
    assert.ok(charges.length <= bounds.maxWakes, `seed ${seed}`)
  }))

test('every state of a wake leads to an end, and ends are final', () => {
  const ends = new Set<WakeState>()
  const walk = (state: WakeState, way: readonly WakeState[]): void => {
    assert.not.ok(way.includes(state), `${[...way, state].join(' -> ')} goes round`)
    if (TRANSITIONS[state].length === 0) ends.add(state)
    for (const next of TRANSITIONS[state]) walk(next, [...way, state])
  }
  walk('reserved', [])
  assert.equal([...ends].sort(), ['not_live', 'settled'])
})

test('the end of a turn does not depend on event pages and is reported once', () => {
  const event = (type: string, turn_id: string, content: object = {}) => ({ type, turn_id, content })
  const usage = (turn: string, used: number) => event('usage', turn, { usage: { used, size: 1 } })
  const journal = [
    [usage('other', 500), event('user_message', 'own'), usage('own', 740), event('done', 'own', { duration_ms: 12.4 })],
    [event('user_message', 'own'), event('error', 'own', { error: 'x', duration_ms: 3 }), event('done', 'own')],
    [event('user_message', 'own'), event('user_message', 'next'), event('done', 'own', { duration_ms: 3 })],
    [event('user_message', 'own'), event('error', 'own', { prompt_sent: false })],
    [event('system', 'own', { note: 'prompt_dropped' })],
    [event('user_message', 'own'), usage('own', 100), event('done', 'own', { duration_ms: -1 })],
  ]
  const ends = journal.map(events => {
    const tale = new Tale('own', 200)
    for (const one of events) tale.add(one)
    return tale.end
  })
  assert.equal(ends, [
    { how: 'over', wallMs: 12, tokens: 240 },
    { how: 'over', wallMs: 3 },
    { how: 'over' },
    { how: 'unsent', why: 'prompt_not_sent' },
    { how: 'unsent', why: 'prompt_dropped' },
    { how: 'over' },
  ])
  const strange = new Tale('own', undefined)
  for (const content of [null, 7, { usage: 'much' }, { usage: { used: -1 } }, { usage: null }])
    strange.add({ type: 'usage', turn_id: 'own', content })
  assert.is(strange.end, undefined)
})

test.run()
