import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Feed, type FeedItem, type FeedSource, follow, positionOf } from '../../../kernel/kit/feed.js'

type Item = FeedItem<string, string>

/** A subject whose changes are numbered, and a reader of it that takes an item when it is told to. */
function scene(remembered?: number) {
  const feed = new Feed<string>(remembered)
  const subject = { last: 0 as number | undefined, epoch: 0 }
  const change = () => {
    subject.last = (subject.last ?? 0) + 1
    feed.publish(subject.last, `e${subject.last}`)
  }
  const source: FeedSource<string, string> = {
    last: () => subject.last,
    read: after => {
      const entries = feed.between(after, subject.last ?? 0)
      return entries && { at: subject.last ?? 0, entries }
    },
    snapshot: () => ({ at: subject.last ?? 0, snapshot: `all to ${subject.last}` }),
    next: () => feed.next(),
    epoch: () => subject.epoch,
  }
  const stop = new AbortController()
  const reader = (after?: number) => follow(source, after, stop.signal)
  return { feed, subject, change, reader, stop }
}
const next = async (items: AsyncGenerator<Item>) => (await items.next()).value as Item
const settled = () => new Promise(resolve => setImmediate(resolve))

test('a new reader gets a snapshot, then live entries', async () => {
  const { change, reader } = scene()
  change()
  const items = reader()
  assert.equal(await next(items), { at: 1, snapshot: 'all to 1', reset: undefined })
  const waiting = next(items)
  change()
  assert.equal(await waiting, { at: 2, entries: ['e2'] })
  change()
  change()
  const seen: string[] = []
  while (seen.length < 2) {
    const item = await next(items)
    if ('entries' in item) seen.push(...item.entries)
  }
  assert.equal(seen, ['e3', 'e4'])
  await items.return(undefined)
})

test('a returning reader resumes after its position, without a snapshot', async () => {
  const { change, reader } = scene()
  for (let n = 0; n < 5; n++) change()
  assert.equal(await next(reader(3)), { at: 5, entries: ['e4', 'e5'] })
  assert.equal(await next(reader(5)), { at: 5, entries: [] }, 'nothing was missed')
})

test('a reader with a forgotten or invalid position gets a snapshot at once, with the reason', async () => {
  const { change, reader } = scene(3)
  for (let n = 0; n < 10; n++) change()
  assert.equal(await next(reader(2)), { at: 10, snapshot: 'all to 10', reset: 'behind' })
  assert.equal(await next(reader(7)), { at: 10, entries: ['e8', 'e9', 'e10'] })
  const ahead = reader(4711)
  assert.equal(await next(ahead), { at: 10, snapshot: 'all to 10', reset: 'ahead' })
  const waiting = next(ahead)
  change()
  assert.equal(await waiting, { at: 11, entries: ['e11'] })
})

test('another epoch gives a snapshot, also if it began before the first read', async () => {
  const { feed, subject, change, reader } = scene()
  change()
  const [early, late] = [reader(1), reader(1)]
  await next(late)
  const waiting = next(late)
  subject.epoch++
  feed.wake()
  assert.equal(await waiting, { at: 1, snapshot: 'all to 1', reset: 'epoch' })
  assert.equal(await next(early), { at: 1, snapshot: 'all to 1', reset: 'epoch' })
})

test('a wake-up without an entry yields an item without news', async () => {
  const { feed, change, reader } = scene()
  change()
  const items = reader(1)
  await next(items)
  const waiting = next(items)
  feed.wake()
  assert.equal(await waiting, { at: 1, entries: [] })
})

test('a feed ends with its signal and with its source', async () => {
  const { feed, subject, change, reader, stop } = scene()
  change()
  const [gone, stopped] = [reader(1), reader(1)]
  await next(gone)
  await next(stopped)
  const [ends, waits] = [gone.next(), stopped.next()]
  subject.last = undefined
  feed.wake()
  assert.ok((await ends).done)
  subject.last = 1
  await waits
  const aborted = stopped.next()
  await settled()
  stop.abort()
  assert.ok((await aborted).done)
  assert.ok((await reader().next()).done)
})

test('a read in chunks leaves nothing out', async () => {
  const all = Array.from({ length: 10 }, (_, n) => n + 1)
  const source: FeedSource<string, number> = {
    last: () => 10,
    read: async after => ({ at: Math.min(after + 4, 10), entries: all.slice(after, after + 4) }),
    snapshot: () => ({ at: 0, snapshot: 'empty' }),
    next: () => new Promise(() => {}),
  }
  const seen: number[] = []
  for await (const item of follow(source, 0, new AbortController().signal)) {
    if ('entries' in item) seen.push(...item.entries)
    if (item.at === 10) break
  }
  assert.equal(seen, all)
})

test('entries have increasing numbers, and a gap is not skipped', () => {
  const feed = new Feed<string>()
  feed.publish(3, 'a')
  assert.throws(() => feed.publish(3, 'b'), /cannot follow/)
  feed.publish(5, 'c')
  assert.is(feed.last, 5)
  assert.equal(feed.between(4, 5), ['c'])
  assert.is(feed.between(3, 5), undefined)
  assert.equal(feed.between(5, 5), [])
})

test('a position is only the value of Last-Event-ID', () => {
  assert.equal(['0', ' 12 ', '999999999999999'].map(positionOf), [0, 12, 999_999_999_999_999])
  for (const none of [undefined, '', 'x', '-1', '1.5', '1e3', '9999999999999999', '0x10']) {
    assert.is(positionOf(none), undefined, none)
  }
})

test.run()
