import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../kernel/contract/errors.js'
import type { Tx } from '../../../kernel/contract/storage.js'
import { Gate, Guard, Notify, Pipeline, Registry } from '../../../kernel/hooks/index.js'
import { forever, hasEnded, scene } from './scene.js'

const no = new Fault('no', 409, 'no')
const tx = {} as Tx

test('taps run by depth, owner and registration order, whatever was reloaded or loaded later', async () => {
  const { report, guarding, tapper } = scene()
  const registry = new Registry<string>('things', report)
  const notify = new Notify<[string[]]>('heard', guarding())
  const load = (owner: string, depth: number) => {
    const by = tapper(owner, depth)
    for (const n of [1, 2]) {
      registry.tap(by, () => [`${owner}${n}`])
      notify.tap(by, seen => seen.push(`${owner}${n}`))
    }
    return by
  }
  const seen = async () => {
    const events: string[] = []
    await notify.call(events)
    assert.equal(
      registry.collect().map(({ entry }) => entry),
      events,
    )
    return events.join(' ')
  }
  load('c', 0)
  const b = load('b', 0)
  load('a', 1)
  const never = await seen()
  assert.is(never, 'b1 b2 c1 c2 a1 a2')
  await b.scope.release(1000)
  assert.is(await seen(), 'c1 c2 a1 a2')
  load('b', 0)
  assert.is(await seen(), never)
  load('a', 0)
  assert.is(await seen(), 'a1 a2 b1 b2 c1 c2 a1 a2')
})

test('an exception of a registry contributor is contained: the others are collected', () => {
  const { reports, report, tapper } = scene()
  const registry = new Registry<number>('numbers', report)
  registry.tap(tapper('a'), () => [1])
  registry.tap(tapper('b'), () => {
    throw new Error('boom')
  })
  registry.tap(tapper('c'), () => [3])
  assert.equal(registry.collect(), [
    { owner: 'a', entry: 1 },
    { owner: 'c', entry: 3 },
  ])
  assert.equal(reports, ['b numbers: boom'])
})

test('notify: a tap that throws, rejects or never ends is reported by name, and the next one runs', async () => {
  const { clock, reports, guarding, tapper } = scene()
  const notify = new Notify<[]>('heard', guarding(200))
  let heard = 0
  notify.tap(tapper('a'), () => {
    throw new Error('thrown')
  })
  notify.tap(tapper('b'), async () => {
    throw new Error('rejected')
  })
  notify.tap(tapper('c'), forever)
  notify.tap(tapper('d'), () => heard++)
  const call = notify.call()
  await clock.advance(199)
  assert.not.ok(await hasEnded(call))
  await clock.advance(1)
  await call
  assert.is(heard, 1)
  assert.equal(reports, ['a heard: thrown', 'b heard: rejected', 'c heard: no end within 200 ms'])
  assert.is(clock.pending, 0)
})

test('pipeline: undefined keeps the value, null replaces it, and a failing tap leaves it unchanged', async () => {
  const { clock, reports, guarding, tapper } = scene()
  const pipeline = new Pipeline<string | null, [string]>('word', guarding(100))
  pipeline.tap(tapper('a'), (value, more) => `${value}${more}`)
  pipeline.tap(tapper('b'), async () => undefined)
  pipeline.tap(tapper('c'), forever)
  const run = pipeline.run('x', 'y')
  await clock.advance(100)
  assert.is(await run, 'xy')
  assert.equal(reports, ['c word: no end within 100 ms'])
  pipeline.tap(tapper('d'), () => null)
  const nothing = pipeline.run('x', 'y')
  await clock.advance(100)
  assert.is(await nothing, null)
})

const answers: readonly (readonly [says: string, answer: () => unknown, verdict: string | undefined])[] = [
  ['undefined', () => undefined, undefined],
  ['a fault', () => no, 'no'],
  ['null', () => null, 'hook_failed'],
  ['true', () => true, 'hook_failed'],
  ['an error other than a fault', () => new Error('x'), 'hook_failed'],
  [
    'an exception',
    () => {
      throw new Error('boom')
    },
    'hook_failed',
  ],
  [
    'a thrown fault',
    () => {
      throw no
    },
    'no',
  ],
]

for (const [says, answer, verdict] of answers) {
  test(`gate and guard: ${says} ${verdict === undefined ? 'allows the call' : `refuses with ${verdict}`}`, async () => {
    const { report, guarding, tapper } = scene()
    const gate = new Gate<[]>('may', guarding())
    const guard = new Guard<[]>('may', report)
    gate.tap(tapper('a'), async () => answer() as Fault)
    guard.tap(tapper('a'), () => answer() as Fault)
    assert.is((await gate.ask())?.code, verdict)
    try {
      guard.check(tx)
      assert.is(verdict, undefined)
    } catch (error) {
      assert.is((error as Fault).code, verdict)
    }
  })
}

test('a gate without an answer refuses, and so does a guard with a late one', async () => {
  const { clock, reports, report, guarding, tapper } = scene()
  const gate = new Gate<[]>('may', guarding())
  gate.tap(tapper('a'), forever)
  const verdict = gate.ask()
  await clock.advance(5000)
  assert.match((await verdict)?.message ?? '', 'a failed to decide may: no end within 5000 ms')
  const guard = new Guard<[]>('may', report)
  const late = Promise.reject(new Error('nobody hears this'))
  guard.tap(tapper('a'), () => late as never)
  assert.throws(() => guard.check(tx), /a failed to decide may/)
  assert.is(reports.length, 2)
})

test('a notify or pipeline tap that keeps failing is skipped with increasing back-off and reported once', async () => {
  const { clock, reports, guarding, tapper } = scene()
  const notify = new Notify<[]>('heard', guarding())
  let calls = 0
  let broken = true
  notify.tap(tapper('a'), () => {
    calls++
    if (broken) throw new Error('boom')
  })
  const call = async (times: number) => {
    for (let n = 0; n < times; n++) await notify.call()
    return [calls, reports.length]
  }
  assert.equal(await call(50), [5, 5])
  assert.match(reports[4] ?? '', 'a heard: boom; after 5 faults in a row it is skipped for 30 s')
  await clock.advance(29_999)
  assert.equal(await call(1), [5, 5])
  await clock.advance(1)
  assert.equal(await call(50), [6, 6])
  assert.match(reports[5] ?? '', 'skipped for 60 s')
  await clock.advance(60_000)
  broken = false
  assert.equal(await call(3), [9, 6])
  broken = true
  assert.equal(await call(1), [10, 7])
  assert.is(reports[6], 'a heard: boom')
})

test('a gate is never skipped, so that repeated failures open nothing', async () => {
  const { guarding, report, tapper } = scene()
  const gate = new Gate<[]>('may', guarding())
  const guard = new Guard<[]>('may', report)
  const boom = () => {
    throw new Error('boom')
  }
  gate.tap(tapper('a'), boom)
  guard.tap(tapper('a'), boom)
  for (let n = 0; n < 20; n++) {
    assert.is((await gate.ask())?.code, 'hook_failed')
    assert.throws(() => guard.check(tx), /failed to decide/)
  }
})

test('a tap released during a call is not called again; a running one is awaited', async () => {
  const { clock, guarding, tapper } = scene()
  const notify = new Notify<[]>('heard', guarding())
  const [a, b] = [tapper('a'), tapper('b')]
  let finish = () => {}
  notify.tap(a, () => new Promise<void>(resolve => (finish = resolve)))
  let late = 0
  notify.tap(b, () => late++)
  const call = notify.call()
  await new Promise(setImmediate)
  await b.scope.release(1000)
  const released = a.scope.release(1000)
  assert.not.ok(await hasEnded(released))
  finish()
  assert.equal(await released, [])
  await call
  assert.is(late, 0)
  const hanging = tapper('c')
  notify.tap(hanging, forever)
  void notify.call()
  const giving = hanging.scope.release(1000)
  await clock.advance(1000)
  assert.match(((await giving)[0] as Error).message, /c: releasing tap heard: no end within 1000 ms/)
  await clock.advance(5000)
  assert.is(clock.pending, 0)
})

test('a released scope takes no more taps, and the hook is unchanged', async () => {
  const { guarding, tapper } = scene()
  const notify = new Notify<[]>('heard', guarding())
  const gone = tapper('a')
  await gone.scope.release(1000)
  let heard = 0
  assert.throws(() => notify.tap(gone, () => heard++), /a is already released/)
  await notify.call()
  assert.is(heard, 0)
})

test('a tap that ends in the same turn costs no timer', async () => {
  const { clock, guarding, tapper } = scene()
  let armed = 0
  const counting = { ...guarding(), clock: Object.assign(Object.create(clock), { timeout: () => armed++ }) }
  const notify = new Notify<[]>('heard', counting)
  for (let n = 0; n < 20; n++)
    notify.tap(tapper(`t${n}`), async () => {
      await null
    })
  await notify.call()
  await new Promise(setImmediate)
  assert.is(armed, 0)
})

test.run()
