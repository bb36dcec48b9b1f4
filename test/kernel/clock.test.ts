import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../kernel/clock.js'
import { iso } from '../../kernel/contract/basics.js'
import { VirtualClock } from '../../testing/virtual-clock.js'
import { typescript } from '../harness/run-typescript.js'

test('the system clock fires in time order and never early', async () => {
  const clock = systemClock()
  const order: number[] = []
  const early: number[] = []
  await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const ms = index * 1.7
      const start = clock.monotonic()
      await clock.sleep(ms)
      if (clock.monotonic() - start < ms) early.push(ms)
      order.push(ms)
    }),
  )
  assert.equal(early, [])
  assert.is(order.length, 60)
  assert.ok(order.indexOf(0) < order.indexOf(59 * 1.7))
})

test('timers beyond the limit of Node wait, can be canceled, and refuse invalid numbers', async () => {
  const clock = systemClock()
  let fired = 0
  const timers = [2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY, 5].map(ms => clock.timeout(ms, () => fired++))
  for (const timer of timers.slice(3)) timer.cancel()
  await clock.sleep(30)
  assert.is(fired, 0)
  for (const timer of timers) timer.cancel()
  assert.throws(() => clock.timeout(Number.NaN, () => {}), /number of milliseconds/)
})

test('a timer keeps the process alive unless it is unreferenced', () => {
  const run = (ms: number, options: string) => {
    const { status, stdout } = spawnSync(
      process.execPath,
      [
        ...typescript,
        '--input-type=module',
        '-e',
        `import { systemClock } from './kernel/clock.ts'
      systemClock().timeout(${ms}, () => console.log('fired')${options})`,
      ],
      { cwd: fileURLToPath(new URL('../..', import.meta.url)), encoding: 'utf8', timeout: 50_000 },
    )
    return [status, stdout]
  }
  assert.equal(run(50, ''), [0, 'fired\n'])
  // Far longer than the process takes to end: one that waited for it would be killed first.
  assert.equal(run(3_600_000, ', { unref: true }'), [0, ''])
})

test('sleep rejects with the abort reason, before and during the wait, and leaves no listener', async () => {
  for (const clock of [systemClock(), new VirtualClock()]) {
    const reason = new Error('enough')
    const aborted = AbortSignal.abort(reason)
    assert.is(await clock.sleep(1000, aborted).catch(error => error), reason)
    const controller = new AbortController()
    const sleeping = clock.sleep(1_000_000, controller.signal).catch(error => error)
    controller.abort(reason)
    assert.is(await sleeping, reason)
    if (clock instanceof VirtualClock) assert.is(clock.pending, 0)
  }
})

test('virtual time fires each timer in order at its time', async () => {
  const clock = new VirtualClock(1000)
  const seen: string[] = []
  const at = (name: string) => () => seen.push(`${name}@${clock.now()}`)
  clock.timeout(30, at('c'))
  clock.timeout(10, at('a'))
  clock.timeout(30, at('d'))
  clock.timeout(20, at('b'))
  clock.timeout(20, at('gone')).cancel()
  await new Promise(resolve => setTimeout(resolve, 20))
  assert.equal(seen, [])
  assert.is(clock.now(), 1000)
  await clock.advance(29)
  assert.equal(seen, ['a@1010', 'b@1020'])
  assert.is(clock.now(), 1029)
  await clock.advance(1)
  assert.equal(seen, ['a@1010', 'b@1020', 'c@1030', 'd@1030'])
  assert.is(clock.pending, 0)
})

test('promises are settled between virtual timers, and their new timers fire in the same advance', async () => {
  const clock = new VirtualClock(0)
  const seen: string[] = []
  const loop = async () => {
    for (let round = 1; round <= 3; round++) {
      await clock.sleep(10)
      await Promise.resolve().then(() => {})
      seen.push(`loop ${clock.now()}`)
    }
    await clock.sleep(0)
    seen.push(`end ${clock.now()}`)
  }
  const done = loop()
  clock.timeout(15, () => seen.push('timer 15'))
  await clock.advance(30)
  await done
  assert.equal(seen, ['loop 10', 'timer 15', 'loop 20', 'loop 30', 'end 30'])
})

test('virtual months pass in milliseconds', async () => {
  const clock = new VirtualClock(Date.UTC(2031, 0, 1))
  let days = 0
  const daily = () => {
    days++
    clock.timeout(86_400_000, daily)
  }
  clock.timeout(86_400_000, daily)
  await clock.advance(365 * 86_400_000)
  assert.is(days, 365)
  assert.is(iso(clock.now()), '2032-01-01T00:00:00.000Z')
  assert.is(clock.monotonic(), 365 * 86_400_000)
})

test('a jump of the wall clock moves no timer', async () => {
  const clock = new VirtualClock(0)
  let fired = 0
  clock.timeout(100, () => fired++)
  clock.jump(3_600_000)
  await clock.advance(99)
  assert.is(fired, 0)
  assert.is(clock.now(), 3_600_099)
  assert.is(clock.monotonic(), 99)
  await clock.advance(1)
  assert.is(fired, 1)
})

test('a nested advance is refused, and an advance continues after a timer that throws', async () => {
  const clock = new VirtualClock(0)
  const first = clock.advance(10)
  assert.match(await clock.advance(10).then(String, String), /advanced already/)
  await first
  clock.timeout(5, () => {
    throw new Error('broken')
  })
  let fired = 0
  clock.timeout(6, () => fired++)
  assert.match(await clock.advance(10).then(String, String), /broken/)
  assert.is(clock.monotonic(), 15)
  await clock.advance(1)
  assert.is(fired, 1)
})

test('iso is UTC with milliseconds', () => {
  assert.is(iso(0), '1970-01-01T00:00:00.000Z')
  assert.is(iso(Date.UTC(2026, 1, 3, 4, 5, 6, 7)), '2026-02-03T04:05:06.007Z')
  assert.throws(() => iso(Number.NaN))
})

test.run()
