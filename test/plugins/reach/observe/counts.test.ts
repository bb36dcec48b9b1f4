// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { seededIds } from '../../../../testing/seeded-ids.js'
import { type Happening, type World, world } from './world.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** What happened, as the test remembers it. */
interface Remembered extends Happening {
  readonly at: number
}

/** Days and hours of a zone by the formatter alone, instant by instant. */
function calendar(zone: string) {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    ...({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', hourCycle: 'h23' } as const),
  })
  const weekday = new Intl.DateTimeFormat('en-US', { timeZone: zone, weekday: 'short' })
  const names = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
  return (at: number) => {
    const [date = '', hour = ''] = format.format(at).split(' ')
    return { date, hour: Number(hour), weekday: names.indexOf(weekday.format(at)) }
  }
}

const RUNS: readonly (readonly [name: string, outcome: 'completed' | 'failed' | 'canceled', payload?: object])[] = [
  ['task.run_completed', 'completed'],
  ['task.run_failed', 'failed'],
  ['task.run_operator_forced_fail', 'failed'],
  ['task.run_recovered_from_attention', 'failed'],
  ['task.run_canceled', 'canceled'],
  ['automation.run.ended', 'completed', { status: 'completed' }],
  ['automation.run.ended', 'failed', { status: 'failed' }],
  ['automation.run.ended', 'canceled', { status: 'canceled' }],
]
const OTHERS: readonly (readonly [name: string, isClosing: boolean, payload?: object])[] = [
  ['session.created', false],
  ['record.put', false],
  ['automation.run.ended', false, { status: 'delegated' }],
  ['task.status_changed', true, { from: 'ready', to: 'completed' }],
  ['task.status_changed', true, { from: 'in_progress', to: 'failed' }],
  ['task.status_changed', false, { from: 'failed', to: 'ready' }],
  ['task.status_changed', false, { from: 'failed', to: 'canceled' }],
  ['task.canceled', true, { from: 'ready' }],
  ['task.canceled', false, { from: 'failed' }],
]

function recount(all: readonly Remembered[], zone: string, now: number, scope: string | undefined) {
  const of = calendar(zone)
  const isToday = of(now).date
  const first = Date.parse(isToday) - 13 * DAY
  const days = new Map<string, { date: string; completed: number; failed: number; canceled: number }>()
  for (let n = 0; n < 14; n++) {
    const date = new Date(first + n * DAY).toISOString().slice(0, 10)
    days.set(date, { date, completed: 0, failed: 0, canceled: 0 })
  }
  const buckets = new Map<string, number>()
  let closed = 0
  for (const { name, payload, at, scope: place } of all) {
    if (scope !== undefined && place !== scope) continue
    const { date, hour, weekday } = of(at)
    const day = days.get(date)
    if (!day) continue
    buckets.set(`${weekday}/${hour}`, (buckets.get(`${weekday}/${hour}`) ?? 0) + 1)
    const same = (entry: readonly [string, unknown, object?]) =>
      entry[0] === name && JSON.stringify(entry[2] ?? {}) === JSON.stringify(payload ?? {})
    const outcome = RUNS.find(same)?.[1]
    if (outcome) day[outcome]++
    if (date === isToday && OTHERS.find(same)?.[1]) closed++
  }
  return { days: [...days.values()], buckets, closed }
}

async function agrees(of: World, all: readonly Remembered[], zone: string, where: string): Promise<void> {
  for (const scope of [undefined, ...of.workspaces]) {
    const overview = await of.overview(scope === undefined ? '' : `?workspace=${scope}`)
    // Events of the daemon itself are in the log too; the test knows of those with a scope only.
    const { days, buckets, closed } = recount(all, zone, of.clock.now(), scope)
    assert.equal(overview.outcomes.days, days, `${where} ${scope}`)
    assert.is(overview.today.tasks_closed, closed, where)
    const sum = (name: 'completed' | 'failed' | 'canceled') => days.reduce((n, day) => n + day[name], 0)
    assert.equal([overview.outcomes.completed, overview.outcomes.failed], [sum('completed'), sum('failed')], where)
    const today = days.at(-1)
    assert.equal([overview.today.runs_completed, overview.today.runs_failed], [today?.completed, today?.failed], where)
    if (scope === undefined) continue
    const pulse = overview.pulse.buckets.map((bucket: Record<string, number>) => [
      `${bucket.weekday}/${bucket.hour}`,
      bucket.events,
    ])
    assert.equal(Object.fromEntries(pulse), Object.fromEntries(buckets), `${where} ${scope}`)
    const most = Math.max(0, ...buckets.values())
    assert.is(overview.pulse.busiest?.events ?? 0, most, where)
  }
}

/** Zones with a change of clocks in the history, on the half hour, and far from UTC. */
const HISTORIES = [
  ['Europe/Berlin', Date.UTC(2030, 2, 25)],
  ['America/New_York', Date.UTC(2030, 9, 30)],
  ['Asia/Kolkata', Date.UTC(2030, 5, 1)],
  ['Australia/Lord_Howe', Date.UTC(2030, 2, 30)],
  ['Pacific/Kiritimati', Date.UTC(2030, 11, 28)],
] as const

for (const [n, [zone, at]] of HISTORIES.entries())
  test(`counts equal a recount: ${zone}`, async () => {
    const { random } = seededIds(Number(process.env.SVC_SEED ?? 7) + n)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
    const of = await world({ at, zone })
    const created = of.workspaces.map(scope => ({ name: 'workspace.created', scope, at }))
    const all: Remembered[] = [...created]
    for (let step = 0; step < 60; step++) {
      const events = Array.from({ length: Math.floor(random() * (step % 10 === 0 ? 700 : 12)) }, (): Happening => {
        const [name, , payload] = random() < 0.5 ? pick(RUNS) : pick(OTHERS)
        const scope = random() < 0.3 ? undefined : pick(of.workspaces)
        return { name, scope, ...(payload && { payload: payload as Record<string, unknown> }) }
      })
      await of.emit(events)
      all.push(...events.map(happening => ({ ...happening, at: of.clock.now() })))
      if (random() < 0.2) await agrees(of, all, zone, `step ${step}`)
      await of.clock.advance(Math.floor(random() * 10 * HOUR))
      if (random() < 0.1) await of.restart()
    }
    await agrees(of, all, zone, 'at the end')
    await of.pass(10_000)
    await agrees(of, all, zone, 'when all is written')
    await of.close()
  })

test.run()
