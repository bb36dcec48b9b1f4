import { test } from 'uvu'
import * as assert from 'uvu/assert'
import observe from '../../../../plugins/reach/observe/index.js'
import type { AgentDay, SessionInfo, SessionSpan } from '../../../../plugins/work/sessions/api.js'
import { seededIds } from '../../../../testing/seeded-ids.js'
import { START, scene } from '../../work/tasks/scene.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

test('cached days equal a full reread', async () => {
  const { random } = seededIds(Number(process.env.SVC_SEED ?? 3))
  const below = (n: number) => Math.floor(random() * n)
  const usage: AgentDay[] = []
  const spans: SessionSpan[] = []
  const sessions = new Map<string, SessionInfo>()
  const usageBetween = (from: string, to: string) => usage.filter(({ day }) => day >= from && day <= to)
  const longest = (since: number, until: number) =>
    spans.filter(({ to }) => to >= since && to < until).sort((a, b) => b.to - b.from - (a.to - a.from))[0]
  const past = { usageDays: 90, usage: usageBetween, longest }
  const world = await scene({ plugins: [observe], past, sessions })
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)
  for (let step = 0; step < 100; step++) {
    const now = world.clock.now()
    const tokens = below(100)
    usage.push({
      day: dayOf(now),
      agent_name: `agent-${below(6)}`,
      turns: 1,
      tokens,
      cost: null,
      currency: null,
      told: 1,
      priced: 0,
    })
    if (below(3) === 0) {
      const id = `ses_${step}`
      sessions.set(id, { id } as SessionInfo)
      spans.push({ id, agentName: 'ada', from: now - 1000, to: now })
    }
    // One goes on, and one is removed.
    const at = below(spans.length + 1)
    const old = spans[at]
    if (old && below(2) === 0) spans[at] = { ...old, to: now }
    else if (old && below(8) === 0) {
      sessions.delete(old.id)
      spans.splice(at, 1)
    }
    if (below(2) === 0) {
      const { body } = await world.request('GET', `/api/observe/overview?usage_window=${['7', '30', '90'][below(3)]}`)
      const { usage: told, pulse } = body.overview
      const first = dayOf(now - (told.window_days - 1) * DAY)
      const all = usageBetween(first, dayOf(now))
      assert.is(
        told.total_tokens,
        all.reduce((sum, row) => sum + (row.tokens ?? 0), 0),
        `step ${step}`,
      )
      const since = Date.parse(dayOf(now - 13 * DAY))
      const expected = longest(since, Number.MAX_SAFE_INTEGER)
      const seconds = expected && Math.round((expected.to - expected.from) / 1000)
      assert.is(pulse.longest_session?.duration_seconds, seconds, `step ${step}`)
    }
    await world.clock.advance(below(17 * HOUR))
  }
  assert.ok(world.clock.now() > START + 30 * DAY)
  await world.close()
})

test.run()
