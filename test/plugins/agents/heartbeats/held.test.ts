import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { backup } from '../../../../plugins/index.js'
import { openWorld } from '../../../proofs/heartbeats/world.js'
import { HELD } from '../../desk/backup/restored.js'

const START = Date.UTC(2026, 5, 1, 12, 0, 0)
const HOUR = 3_600_000
const POLICY = '---\nsummary: Look around.\npreferences: { min_interval: 10m }\n---\nAsk nobody.\n'

test('no heartbeat fires in a held home; after the confirmation they do, and none is caught up', async () => {
  const files = { 'held.json': JSON.stringify(HELD) }
  const world = await openWorld({ start: START, plugins: [backup], files })
  try {
    await world.agent('late', POLICY)
    await world.session('ses_1', 'late')
    const wakeEvents = async () => {
      const url = '/api/agents/late/heartbeat/status?include_recent_wake_events=true'
      return ((await world.request('GET', url)).body as { wake_events: unknown[] }).wake_events
    }
    for (let n = 0; n < 18; n++) {
      await world.clock.advance(HOUR / 6)
      // Files are read meanwhile.
      for (let requestCount = 0; requestCount < 3; requestCount++) await wakeEvents()
    }
    // No wake-up was tried either.
    assert.equal([world.prompts, await wakeEvents()], [[], []])
    const { status } = await world.request('POST', '/api/backups/confirm')
    assert.is(status, 200)
    const confirmed = world.clock.now()
    await world.passTo(confirmed + HOUR, 1)
    const minutes = world.prompts.map(({ at }) => Math.floor((at - confirmed) / 60_000))
    assert.ok(minutes.length >= 5 && minutes.length <= 7, `${minutes}`)
    assert.ok(
      minutes.every((minute, n) => n === 0 || minute - (minutes[n - 1] as number) >= 10),
      `${minutes}`,
    )
  } finally {
    await world.close()
  }
})

test.run()
