import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Alarm, type AlarmWork } from '../../../kernel/kit/alarm.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'

const MINUTE = 60_000

/** An alarm that runs; `fired` has the times, from the start on, and the keys. */
function scene(
  options: { batch?: number; setBack?: (ms: number, clock: VirtualClock) => unknown; fails?: number } = {},
) {
  const clock = new VirtualClock()
  const start = clock.now()
  const alarm = new Alarm(clock, {
    retryMs: 5000,
    ...(options.batch === undefined ? {} : { batch: options.batch }),
  })
  const fired: [number, ...string[]][] = []
  const failed: string[] = []
  let left = options.fails ?? 0
  const work: AlarmWork = {
    fire: async keys => {
      fired.push([clock.now() - start, ...keys])
      if (left-- > 0) throw new Error('no')
    },
    failed: (error, keys) => failed.push(`${(error as Error).message} ${keys}`),
    ...(options.setBack ? { setBack: async ms => void (await options.setBack?.(ms, clock)) } : {}),
  }
  const stop = new AbortController()
  const done = alarm.run(stop.signal, work)
  const end = async () => {
    stop.abort()
    await done
    assert.is(clock.pending, 0, 'timers are left')
  }
  return { clock, start, alarm, fired, failed, end }
}

test('keys fire at their times, the earliest first, once', async () => {
  const { clock, start, alarm, fired, end } = scene()
  alarm.set('b', start + 2000)
  alarm.set('a', start + 2000)
  alarm.set('c', start + 1000)
  alarm.set('never', start + 500)
  alarm.set('never', undefined)
  assert.is(alarm.size, 3)
  assert.is(alarm.next, start + 1000)
  await clock.advance(10_000)
  assert.equal(fired, [
    [1000, 'c'],
    [2000, 'a', 'b'],
  ])
  assert.is(alarm.next, undefined)
  await end()
})

test('a key set while the alarm sleeps is noticed, earlier or later', async () => {
  const { clock, start, alarm, fired, end } = scene()
  alarm.set('a', start + 30_000)
  await clock.advance(1000)
  alarm.set('b', start + 2000)
  await clock.advance(1500)
  alarm.set('a', start + 40_000)
  await clock.advance(MINUTE)
  assert.equal(fired, [
    [2000, 'b'],
    [40_000, 'a'],
  ])
  await end()
})

test('a batch fires a limited number of keys, and the rest right after', async () => {
  const { clock, start, alarm, fired, end } = scene({ batch: 2 })
  for (const key of ['a', 'b', 'c', 'd', 'e']) alarm.set(key, start + 1000)
  await clock.advance(1000)
  assert.equal(fired, [
    [1000, 'a', 'b'],
    [1000, 'c', 'd'],
    [1000, 'e'],
  ])
  await end()
})

test('an alarm without keys has no timer', async () => {
  const { clock, start, alarm, end } = scene()
  await clock.advance(0)
  assert.is(clock.pending, 0)
  alarm.set('a', start + 1000)
  await clock.advance(0)
  assert.is(clock.pending, 1)
  alarm.set('a', undefined)
  await clock.advance(0)
  assert.is(clock.pending, 0)
  await end()
})

test('a forward clock jump is noticed within a minute', async () => {
  const { clock, start, alarm, fired, end } = scene()
  alarm.set('a', start + 600 * MINUTE)
  await clock.advance(1000)
  clock.jump(700 * MINUTE)
  await clock.advance(MINUTE)
  assert.equal(
    fired.map(([, key]) => key),
    ['a'],
  )
  await end()
})

test('a key set again after a backward clock jump fires on time, however long setting it took', async () => {
  let release = () => {}
  const { clock, start, alarm, fired, end } = scene({
    setBack: () =>
      new Promise<void>(resolve => {
        release = resolve
      }),
  })
  alarm.set('a', start + 2 * MINUTE)
  await clock.advance(1000)
  clock.jump(-2 * MINUTE)
  await clock.advance(MINUTE)
  const due = clock.now() + 30_000
  await clock.advance(10_000)
  alarm.set('a', due)
  release()
  await clock.advance(20_000)
  assert.equal(fired, [[due - start, 'a']])
  await end()
})

test('a backward clock jump fires nothing early and is reported before anything fires', async () => {
  const notices: number[] = []
  const { clock, start, alarm, fired, end } = scene({ setBack: ms => notices.push(ms) })
  alarm.set('a', start + 2 * MINUTE)
  await clock.advance(1000)
  clock.jump(-10 * MINUTE)
  await clock.advance(5 * MINUTE)
  assert.equal(fired, [])
  assert.is(notices.length, 1)
  assert.ok((notices[0] ?? 0) > 8 * MINUTE && (notices[0] ?? 0) <= 10 * MINUTE, String(notices[0]))
  await clock.advance(8 * MINUTE)
  assert.equal(fired, [[2 * MINUTE, 'a']])
  await end()
})

test('a listener for backward clock jumps is called also without keys', async () => {
  const notices: number[] = []
  const { clock, end } = scene({ setBack: ms => notices.push(ms) })
  await clock.advance(MINUTE)
  clock.jump(-10 * MINUTE)
  await clock.advance(MINUTE)
  assert.is(notices.length, 1)
  await end()
})

test('keys with failed work are retried later, unless they were set meanwhile', async () => {
  const { clock, start, alarm, fired, failed, end } = scene({ fails: 1 })
  alarm.set('a', start + 1000)
  alarm.set('b', start + 1000)
  await clock.advance(2000)
  alarm.set('b', start + 20_000)
  await clock.advance(30_000)
  assert.equal(failed, ['no a,b'])
  assert.equal(fired, [
    [1000, 'a', 'b'],
    [6000, 'a'],
    [20_000, 'b'],
  ])
  await end()
})

test('an alarm that is aborted during the report of a clock jump ends at once', async () => {
  const stop = new AbortController()
  const clock = new VirtualClock()
  const alarm = new Alarm(clock, { retryMs: 1000 })
  const done = alarm.run(stop.signal, {
    fire: async () => {},
    failed: () => {},
    setBack: async () => stop.abort(),
  })
  await clock.advance(1000)
  clock.jump(-10 * MINUTE)
  await clock.advance(MINUTE)
  await done
  assert.is(clock.pending, 0)
})

test.run()
