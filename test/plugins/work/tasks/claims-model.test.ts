// proof, timeout: 240s: histories of claims, expiries, heartbeats, kills and restarts against a model
import { test } from 'uvu'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { History } from './history.js'
import { StatusHistory } from './status-history.js'

/** `npm run prove:models` has more, and `npm run prove:tasks -- --histories 10000` many. */
const STEPS = Number(process.env.SVC_STEPS ?? 60)

test('a run has at most one holder, is never lost, and is never ended by a former holder', async () => {
  await forSeeds(4, seed => new History(new Dice(seed), STEPS).play())
})

test('the status of every task follows from its events alone', async () => {
  await forSeeds(2, seed => new StatusHistory(new Dice(seed), STEPS).play())
})

test.run()
