import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { within } from '../../../kernel/clock.js'
import { FaultLog } from '../../../kernel/host/fault-log.js'
import { keepRunning } from '../../../kernel/host/loops.js'
import { systemIds } from '../../../kernel/ids.js'
import type { Plugin } from '../../../kernel/plugin.js'
import { OwnedScope } from '../../../kernel/scope.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, whileTimePasses } from '../../harness/kernel.js'

/** A loop on a virtual clock: what it is and what was reported. */
function loop(run: (signal: AbortSignal) => Promise<void>) {
  const clock = new VirtualClock()
  const scope = new OwnedScope('owner', clock)
  const reports: string[] = []
  const report = ({ owner, hook, error }: { owner: string; hook: string; error: unknown }) => {
    reports.push(`${owner} ${hook}: ${(error as Error).message}`)
  }
  keepRunning('owner', 'loop', run, scope, { clock, ids: systemIds(), report })
  return { clock, scope, reports }
}

const endings = {
  throws: () => {
    throw new Error('boom')
  },
  rejects: async () => {
    throw new Error('boom')
  },
  'ends by itself': async () => {},
}
for (const [says, end] of Object.entries(endings)) {
  test(`a service that ${says} is restarted with back-off until its plugin is released`, async () => {
    let runs = 0
    const { clock, scope, reports } = loop(() => {
      runs++
      return end()
    })
    await clock.advance(50)
    assert.is(runs, 2)
    await clock.advance(60_000)
    assert.ok(runs > 8 && runs < 14, `${runs} runs`)
    assert.is(reports.length, runs)
    assert.match(reports[0] ?? '', /owner service loop: (boom|it ended although it was not stopped)/)
    assert.equal(scope.held(), ['service loop'])
    assert.equal(await scope.release(1000), [])
    const last = runs
    await clock.advance(600_000)
    assert.is(runs, last)
    assert.is(clock.pending, 0)
  })
}

test('a service that ignores the signal delays the release until its deadline and is named', async () => {
  const { clock, scope } = loop(() => new Promise(() => {}))
  const released = scope.release(5000)
  await clock.advance(5000)
  assert.equal(
    (await released).map(error => error.message),
    ['owner: releasing service loop: no end within 5000 ms'],
  )
})

test('a scope releases in reverse order, each step within its time, and collects failures', async () => {
  const clock = new VirtualClock()
  const scope = new OwnedScope('owner', clock)
  const order: string[] = []
  for (const label of ['a', 'b', 'c']) scope.defer(label, () => order.push(label))
  scope.defer('throws', () => {
    throw new Error('boom')
  })
  scope.defer('hangs', () => new Promise(() => {}))
  const early = scope.defer('early', () => order.push('early'))
  await early()
  await early()
  assert.equal(scope.held(), ['a', 'b', 'c', 'throws', 'hangs'])
  const released = scope.release(100)
  assert.ok(scope.signal.aborted)
  await clock.advance(100)
  assert.equal(
    (await released).map(error => error.message),
    ['owner: releasing hangs: no end within 100 ms', 'owner: releasing throws: boom'],
  )
  assert.equal(order, ['early', 'c', 'b', 'a'])
  assert.throws(() => scope.defer('late', () => {}), 'owner is already released and cannot acquire late')
})

test('a deadline covers calls that start late in a turn, and synchronous ones cost no timer', async () => {
  const clock = new VirtualClock()
  const late = within(clock, 100, new Promise(() => {})).catch(error => error.message)
  await clock.advance(99)
  assert.is(clock.pending, 1)
  await clock.advance(1)
  assert.is(await late, 'no end within 100 ms')
  assert.is(await within(clock, 100, Promise.resolve(7)), 7)
  await new Promise(setImmediate)
  assert.is(clock.pending, 0)
})

test('a flood of faults is counted and bounded, and takes no space or lines from other plugins', async () => {
  const clock = new VirtualClock()
  const log = new FaultLog(clock, () => ({ warn() {} }))
  const add = (owner: string, error: string, at = 0) => log.add({ at, owner, where: 'hook', error })
  assert.ok(add('quiet', 'once'))
  let lines = 0
  for (let n = 0; n < 10_000; n++) if (add('loud', 'the same')) lines++
  assert.is(lines, 14)
  for (let n = 0; n < 10_000; n++) if (add('loud', `another ${n}`)) lines++
  assert.is(lines, 60)
  const mine = log.list().filter(({ owner }) => owner === 'loud')
  assert.is(mine.length, 50)
  assert.is(mine.at(-1)?.error, 'another 9999')
  assert.equal(
    log.list().find(({ owner }) => owner === 'quiet'),
    { at: 0, owner: 'quiet', where: 'hook', error: 'once', count: 1 },
  )
  assert.ok(add('quiet', 'twice'))
  await clock.advance(60_001)
  assert.ok(add('loud', 'a minute later', 60_001))
  add('loud', 'x'.repeat(10_000), 60_001)
  assert.is(log.list().at(-1)?.error.length, 2000)
})

test('late calls of a plugin being applied are refused, and endless ones are abandoned and named', async () => {
  const clock = new VirtualClock()
  let late: unknown
  const slow: Plugin = {
    name: 'slow',
    version: '1',
    requires: {},
    surface: {},
    apply: async kernel => {
      await kernel.clock.sleep(40_000)
      try {
        kernel.scope.defer('too late', () => {})
      } catch (error) {
        late = error
      }
    },
  }
  const svc = await boot({ plugins: [], clock })
  const loading = svc.kernel.host.load(slow)
  await clock.advance(30_000)
  assert.equal(await whileTimePasses(clock, loading), { status: 'failed', error: 'no end within 30000 ms' })
  await clock.advance(10_000)
  assert.match((late as Error).message, 'slow is already released and cannot acquire too late')
  await svc.close()
})

test.run()
