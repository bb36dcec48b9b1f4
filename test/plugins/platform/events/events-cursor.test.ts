import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { event } from '../../../../kernel/contract/surface.js'
import { isGap, type StoredEvent } from '../../../../plugins/platform/events/api.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { DAY, inFolder, Lost, Made, openLog, range, until } from './event-log.js'

type Log = Awaited<ReturnType<typeof openLog>>

const withLog = (use: (log: Log, folder: string) => Promise<void>) =>
  inFolder(async folder => {
    const log = await openLog(folder)
    await use(log, folder)
    await log.close()
  })

/** A plugin with a durable cursor that writes down what it is told: positions, and gaps as `from-to/missed`. */
function follower(
  log: Log,
  owner: string,
  options: { type?: typeof Made; fails?: (event: StoredEvent) => boolean } = {},
) {
  const notices: (number | string)[] = []
  const plugin = log.plugin(owner)
  plugin.events.on({ cursor: 'main', type: options.type ?? '*' }, event => {
    if (options.fails?.(event)) throw new Error(`not ${event.seq}`)
    notices.push(isGap(event) ? `${event.payload.from}-${event.payload.to}/${event.payload.missed}` : event.seq)
  })
  return { told: notices, ...plugin }
}

const atEnd = (log: Log, told: readonly unknown[]) => until(() => told.at(-1) === log.log.last)

test('a new durable cursor starts at the current position and resumes there after a restart', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    await first.emit(Made, 1, 3)
    const before = follower(first, 'p')
    await first.emit(Made, 4, 6)
    await atEnd(first, before.told)
    assert.equal(before.told, [4, 5, 6])
    await before.end()
    await first.emit(Made, 7, 8)
    await first.close()

    const second = await openLog(folder)
    await second.emit(Made, 9, 9)
    const after = follower(second, 'p')
    const other = follower(second, 'q')
    await second.emit(Made, 10, 10)
    await atEnd(second, after.told)
    await atEnd(second, other.told)
    assert.equal(after.told, [7, 8, 9, 10])
    assert.equal(other.told, [10], 'cursors of the same name belong to their plugins')
    await second.close()
  }))

test('a cursor marks handled events: after a crash none is skipped, and few are repeated', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    const done: number[] = []
    first.plugin('p').events.on({ cursor: 'main', type: Made }, async event => {
      if (event.seq === 5) await new Promise(() => {})
      done.push(event.seq)
    })
    await first.emit(Made, 1, 8)
    await until(() => done.length === 4)
    // Neither the plugin nor the log is ended in order.
    await first.store.db.durable()
    await first.store.close()
    const second = await openLog(folder)
    const { told } = follower(second, 'p')
    await atEnd(second, told)
    assert.ok(told[0] === 5 || done.includes(told[0] as number), `resumed at ${told[0]}`)
    assert.equal(told, range(told[0] as number, 8))
    await second.close()
  }))

test('a failing durable consumer is retried with back-off on the same event, and delays only itself', () =>
  withLog(async log => {
    let broken = true
    const tries: number[] = []
    const failing = follower(log, 'bad', {
      fails: event => {
        if (event.seq === 3) tries.push(log.clock.monotonic())
        return broken && event.seq === 3
      },
    })
    const good = follower(log, 'good')
    const plain: number[] = []
    log.plugin('plain').events.on('*', event => {
      plain.push(event.seq)
      if (event.seq === 3) throw new Error('once')
    })
    await log.emit(Made, 1, 5)
    await atEnd(log, good.told)
    await atEnd(log, plain)
    assert.equal(good.told, [1, 2, 3, 4, 5])
    assert.equal(plain, [1, 2, 3, 4, 5], 'a plain consumer is told of the next')
    await until(() => tries.length === 1)
    for (let n = 2; n <= 12; n++) {
      await log.clock.advance(30_000)
      await until(() => tries.length >= n)
    }
    assert.equal(failing.told, [1, 2])
    const waits = tries.map((at, i) => at - (tries[i - 1] ?? 0)).slice(1)
    assert.ok(waits[0]! >= 40 && waits[0]! <= 50 && Math.max(...waits) <= 30_000, waits.join())
    assert.ok(waits.at(-1)! >= 24_000, waits.join())
    const reported = (owner: string) => log.faults.filter(fault => fault.startsWith(`${owner}:`))
    assert.equal(reported('plain'), ['plain: event thing.made: once'])
    assert.ok(reported('bad').length >= 3 && reported('bad').length < tries.length / 2, 'not every attempt is a fault')
    broken = false
    await log.clock.advance(30_000)
    await atEnd(log, failing.told)
    assert.equal(failing.told, [1, 2, 3, 4, 5])
    await failing.end()
  }))

test('a failed event of a concurrent batch holds the cursor, and the others are not repeated', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    const tries: number[] = []
    const done: number[] = []
    let broken = true
    first.plugin('p').events.on({ cursor: 'main', type: Made, atOnce: 4 }, async event => {
      tries.push(event.seq)
      if (event.seq === 2 && broken) throw new Error('not yet')
      done.push(event.seq)
    })
    await first.emit(Made, 1, 6)
    const triesOf = (seq: number) => tries.filter(other => other === seq).length
    const pass = async (what: () => boolean) => {
      for (let n = 0; n < 5000 && !what(); n++) {
        await first.clock.advance(30_000)
        await new Promise(resolve => setTimeout(resolve, 1))
      }
    }
    await pass(() => triesOf(2) >= 3)
    assert.equal(done.toSorted(), [1, 3, 4], 'those beside it are done, and none behind them has begun')
    broken = false
    await pass(() => done.length === 6)
    assert.equal(done.toSorted(), [1, 2, 3, 4, 5, 6])
    for (const seq of [1, 3, 4, 5, 6]) assert.is(triesOf(seq), 1, `event ${seq}`)
    await first.close()
  }))

test('after a crash a failed event is repeated, with the later events of its batch', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    const begun: number[] = []
    first.plugin('p').events.on({ cursor: 'main', type: Made, atOnce: 4 }, async event => {
      begun.push(event.seq)
      if (event.seq === 6) throw new Error('never')
    })
    await first.emit(Made, 1, 8)
    await until(() => begun.includes(8))
    await first.store.db.durable()
    await first.store.close()
    const second = await openLog(folder)
    const { told } = follower(second, 'p')
    await atEnd(second, told)
    assert.ok(Number(told[0]) <= 6, `resumed at ${told[0]}`)
    assert.equal(told, range(told[0] as number, 8))
    await second.close()
  }))

test('a slow consumer keeps rows in the table, one of a rare type does not', () =>
  withLog(async log => {
    let go = () => {}
    const slow: number[] = []
    const plugin = log.plugin('slow')
    plugin.events.on({ cursor: 'main', type: '*' }, async event => {
      if (event.seq === 11) {
        await new Promise<void>(resolve => {
          go = resolve
        })
      }
      slow.push(event.seq)
    })
    const rare = follower(log, 'rare', { type: Lost })
    await log.emit(Made, 1, 200)
    await until(() => slow.length === 10)
    // The first may have begun before.
    await log.log.sweep()
    await log.log.sweep()
    assert.is(log.log.first(), 11, 'what it still needs stays')
    go()
    await atEnd(log, slow)
    await log.log.sweep()
    assert.is(log.log.first(), 151)
    await log.emit(Lost, 1, 1)
    await atEnd(log, rare.told)
    assert.equal(rare.told, [201])
    assert.equal(slow, range(1, 201))
    await log.emit(Made, 1, 59)
    await atEnd(log, slow)
    await rare.end()
    await log.emit(Made, 1, 60)
    await atEnd(log, slow)
    await log.log.sweep()
    await log.log.sweep()
    assert.is(log.log.first(), 261, 'when it is gone, what it had not passed')
  }))

test('the cursor of a removed plugin keeps rows for seven days', () =>
  withLog(async log => {
    const gone = follower(log, 'gone')
    await log.emit(Made, 1, 5)
    await atEnd(log, gone.told)
    await gone.end()
    await log.emit(Made, 1, 100)
    await log.log.sweep()
    assert.is(log.log.first(), 6)
    log.clock.jump(6 * DAY)
    await log.emit(Made, 1, 100)
    await log.log.sweep()
    assert.is(log.log.first(), 6)
    log.clock.jump(2 * DAY)
    await log.log.sweep()
    assert.is(log.log.first(), 156)

    const back = follower(log, 'gone')
    await atEnd(log, back.told)
    // 6 to 155 have left the table, all the rest is younger.
    assert.equal(back.told, ['6-155/150', ...range(156, 205)])
    assert.match(log.faults.join(), /^gone: cursor main: over 7 days behind; events 6 to 155 are skipped$/)
    await back.end()
    const again = follower(log, 'gone')
    await log.emit(Made, 1, 1)
    await atEnd(log, again.told)
    assert.equal(again.told, [206], 'a gap is told once')
  }))

test('events over seven days old are skipped also while in the table; only their type is counted', () =>
  withLog(async log => {
    const gone = follower(log, 'gone', { type: Lost })
    await log.emit(Made, 1, 1)
    await gone.end()
    await log.emit(Made, 1, 4)
    await log.emit(Lost, 1, 3)
    log.clock.jump(8 * DAY)
    await log.emit(Made, 1, 2)
    await log.emit(Lost, 4, 5)
    const back = follower(log, 'gone', { type: Lost })
    await atEnd(log, back.told)
    assert.match(String(back.told[0]), /^[12]-8\/3$/)
    assert.equal(back.told.slice(1), [11, 12])
    await back.end()
    // Of its type nothing was missed: no gap, however long it was away.
    await log.emit(Made, 1, 3)
    log.clock.jump(8 * DAY)
    const third = follower(log, 'gone', { type: Lost })
    await log.emit(Lost, 6, 6)
    await atEnd(log, third.told)
    assert.equal(third.told, [16])
  }))

test('a consumer that fails for seven days gets a gap, as often as needed', () =>
  withLog(async log => {
    let broken = true
    const { told } = follower(log, 'bad', { fails: () => broken })
    await log.emit(Made, 1, 3)
    await until(() => log.clock.pending === 1)
    log.clock.jump(5 * DAY)
    await log.emit(Made, 4, 6)
    log.clock.jump(3 * DAY)
    await log.clock.advance(30_000)
    await until(() => log.faults.some(fault => fault.includes('over 7 days behind; events 1 to 3')))
    await until(() => log.clock.pending === 1)
    broken = false
    await log.clock.advance(30_000)
    await atEnd(log, told)
    assert.equal(told, ['1-3/3', 4, 5, 6])
  }))

test('a gap ends also after a backward clock jump', () =>
  withLog(async log => {
    const gone = follower(log, 'gone', { type: Lost })
    await gone.end()
    log.clock.jump(5 * DAY)
    await log.emit(Made, 1, 1)
    log.clock.jump(-5 * DAY)
    await log.emit(Lost, 2, 2)
    log.clock.jump(8 * DAY)
    await log.emit(Lost, 3, 3)
    const back = follower(log, 'gone', { type: Lost })
    await atEnd(log, back.told)
    assert.equal(back.told, ['1-2/1', 3])
  }))

test('a cursor has one consumer, and none is created inside a transaction', () =>
  withLog(async log => {
    const { events, end } = follower(log, 'p')
    const taken = () => events.on({ cursor: 'main', type: Made }, () => {})
    assert.throws(taken, /the cursor main of p already has a consumer/)
    events.on({ cursor: 'other', type: Made }, () => {})
    const nested = await log.store.db
      .tx(() => events.on({ cursor: 'third', type: Made }, () => {}))
      .catch((error: { code: string }) => error.code)
    assert.is(nested, 'tx_nested')
    await end()
    follower(log, 'p')
  }))

test('a plain consumer far behind reads from the journal', () =>
  withLog(async log => {
    const notices: number[] = []
    let go = () => {}
    log.plugin('p').events.on('*', async event => {
      notices.push(event.seq)
      if (event.seq === 1) {
        await new Promise<void>(resolve => {
          go = resolve
        })
      }
    })
    await log.emit(Made, 1, 600)
    await until(() => notices.length === 1)
    await log.log.sweep()
    assert.is(log.log.first(), 551)
    go()
    await atEnd(log, notices)
    assert.equal(notices, range(1, 600))
  }))

test('consumers that are not behind get every event in order, whatever its size, each with a payload of its own', () =>
  withLog(async log => {
    const Noted = event('thing.noted', v.object({ text: v.string() }))
    const [plain, durable]: (readonly [number, number])[][] = [[], []]
    const note = (notices: (readonly [number, number])[] | undefined) => (each: StoredEvent) => {
      const payload = each.payload as { text: string }
      notices?.push([each.seq, payload.text.length])
      payload.text += 'changed by a consumer'
    }
    log.plugin('p').events.on('*', note(plain))
    log.plugin('q').events.on({ cursor: 'main', type: '*' }, note(durable) as never)
    const sizes = [1, 9000, 2, 20_000, 20_000, 3, ...range(10, 400)]
    for (const size of sizes) {
      const { seq } = await log.store.db.tx(
        t => log.log.emitAll(t, [[Noted, { text: 'x'.repeat(size) }]])[0] as { seq: number },
      )
      if (seq % 7 === 0) await until(() => plain?.at(-1)?.[0] === seq && durable?.at(-1)?.[0] === seq)
    }
    await until(() => plain?.length === sizes.length && durable?.length === sizes.length)
    assert.equal(
      [plain, durable],
      [1, 2].map(() => sizes.map((size, n) => [n + 1, size])),
    )
  }))

test('the sweep runs every hour, and its timer ends with the log', () =>
  inFolder(async folder => {
    const clock = new VirtualClock()
    const log = await openLog(folder, { clock })
    log.log.start()
    await log.emit(Made, 1, 70)
    await until(() => clock.pending === 1)
    await clock.advance(DAY)
    await until(() => log.log.first() === 21)
    await log.close()
    assert.is(clock.pending, 0)
  }))

test.run()
