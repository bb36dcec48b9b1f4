import { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, SseParser } from '../../../../client/sse.js'
import { systemClock, turn } from '../../../../kernel/plugin.js'
import { type Ending, encodeFrame, type Wire } from '../../../../plugins/platform/streams/api.js'
import { StreamHub } from '../../../../plugins/platform/streams/hub.js'
import { RawFrames } from '../../../../plugins/work/sessions/read/raw-frames.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { memoryLog } from './memory-log.js'

// Readers of a session come, pause, lag and leave while events come and the disk is slow or fails: each gets each event once, in
// order, and none that the disk may not have.

const ROUNDS = 12
const STEPS = 250
const LARGE = 1024 * 1024

/** Promises that are settled later, in any order. */
class Later {
  readonly #waiting: (() => void)[] = []

  wait(act: () => void): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#waiting.push(() => {
        try {
          act()
          resolve()
        } catch (error) {
          reject(error)
        }
      }),
    )
  }

  settle(at: number): void {
    const [one] = this.#waiting.splice(at, 1)
    one?.()
  }

  get size(): number {
    return this.#waiting.length
  }
}

/** A log of a journal in memory, with a disk that has what it was asked for only when the test says so. */
function scene(dice: Dice) {
  const payloads: Uint8Array[] = []
  const disk = { asks: new Later(), writes: new Later(), synced: 0, fails: false }
  /** What no reader may see. The hub takes errors of a wire for errors of the stream. */
  const violations: string[] = []
  const { log, row } = memoryLog({
    get last() {
      return payloads.length
    },
    append: (added: readonly Uint8Array[]) => added.map(payload => payloads.push(payload)),
    read: async (from: number, count: number) => {
      for (let turns = dice.upTo(3); turns > 0; turns--) await turn()
      return payloads.slice(from - 1, from - 1 + count).map((payload, i) => ({ sequence: from + i, payload }))
    },
    written: () => disk.writes.wait(() => {}),
  })
  const durable = () => {
    const asked = log.last
    return disk.asks.wait(() => {
      if (disk.fails) throw new Error('the disk')
      disk.synced = Math.max(disk.synced, asked)
    })
  }
  return { disk, violations, durable, log, row, hub: new StreamHub(systemClock(), durable) }
}

/** A program that reads events and connects again after a break. */
class Reader {
  readonly ids: number[] = []
  isOver = true
  /** Frames that its socket takes before it is full. */
  room = 0
  /** Frames that it got beyond that. */
  #beyond = 0
  #into = Object.assign(new EventEmitter(), { writableNeedDrain: false })
  #abort = new AbortController()

  constructor(
    private readonly from: ReturnType<typeof scene>,
    private readonly start: number,
  ) {}

  connect(): void {
    const { disk, violations, durable, log, row, hub } = this.from
    const into = Object.assign(new EventEmitter().setMaxListeners(0), { writableNeedDrain: false })
    const abort = new AbortController()
    this.#into = into
    this.#abort = abort
    this.isOver = false
    this.#beyond = 0
    const parser = new SseParser()
    const take = ({ id, event }: ServerEvent) => {
      if (event === 'error' || event === 'session_stopped') return
      this.ids.push(Number(id))
      if (Number(id) > disk.synced) violations.push(`event ${id} was sent, the disk has ${disk.synced}`)
    }
    const wire: Wire<never> = {
      into: into as unknown as Writable,
      watch: over => into.once('gone', (how: Ending) => over(how)),
      send: (frame: unknown) => {
        if (this.#into !== into) violations.push('a frame was sent to a socket that is gone')
        // The frame that was asked for when the socket became full is sent too.
        if (into.writableNeedDrain && ++this.#beyond > 1) violations.push('a frame was sent to a full socket')
        const bytes = frame instanceof Uint8Array ? frame : encodeFrame(frame as never)
        for (const one of parser.push(Buffer.from(bytes).toString())) take(one)
        into.writableNeedDrain ||= --this.room < 0
      },
      beat: () => undefined,
      end: () => {
        if (this.#into === into) this.isOver = true
        abort.abort()
      },
    }
    const afterSequence = this.ids.at(-1) ?? this.start
    const request = { lastEventId: undefined, afterSequence, epoch: undefined, generation: undefined, limit: undefined }
    const source = { log, clock: systemClock(), row: () => row, durable, signal: abort.signal }
    const frames = new RawFrames(source, request)
    const key = { owner: 'sessions', door: 'socket', actor: {} } as never
    void hub.serve(key, wire, frames as never, () => ({ event: 'error', data: {} }) as never)
  }

  drain(room: number): void {
    this.room = room
    if (!this.#into.writableNeedDrain) return
    this.#into.writableNeedDrain = false
    this.#beyond = 0
    this.#into.emit('drain')
  }

  /** Its socket is destroyed, within a write or between two. */
  leave(): void {
    this.#into.emit('gone', 'gone')
    this.#abort.abort()
    this.isOver = true
  }

  check(last: number): void {
    const wanted = Array.from({ length: last - this.start }, (_, i) => this.start + 1 + i)
    assert.equal(this.ids, wanted)
  }
}

async function play(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const from = scene(dice)
  const { disk, log, row, hub } = from
  const readers: Reader[] = []
  const any = () => dice.of<Reader | undefined>(readers)
  const add = (bytes: number) => void log.append({ type: 'system', turnId: 't', content: { text: 'x'.repeat(bytes) } })
  const become = (state: string) => {
    Object.assign(row, { state })
    log.wake()
  }
  const moves: readonly (readonly [weight: number, move: () => void])[] = [
    [8, () => add(dice.upTo(200))],
    [2, () => add(dice.upTo(30_000))],
    [1, () => seed % 8 === 0 && add(LARGE)],
    [1, () => Array.from({ length: dice.upTo(700) }).forEach(() => void add(50))],
    [12, () => disk.writes.settle(0)],
    [16, () => disk.asks.settle(dice.upTo(disk.asks.size || 1))],
    [
      1,
      () => {
        disk.fails = true
        disk.asks.settle(0)
        disk.fails = false
      },
    ],
    [4, () => readers.length < 12 && readers.push(new Reader(from, dice.upTo(log.last + 1)))],
    [8, () => any()?.drain(dice.upTo(20))],
    [1, () => any()?.leave()],
    [1, () => log.wake()],
    [1, () => become('stopped')],
    [1, () => dice.upTo(20) === 0 && hub.end('shutdown')],
  ]
  const all = moves.flatMap(([weight, move]) => Array<() => void>(weight).fill(move))
  for (let step = 0; step < STEPS; step++) {
    dice.of(all)()
    for (const reader of readers) if (reader.isOver && dice.upTo(4) === 0) reader.connect()
    if (row.state === 'stopped' && dice.chance(0.5)) become('active')
    if (dice.chance(0.7)) await turn()
  }
  become('active')
  // The disk and all readers catch up.
  for (let turns = 0; turns < 400; turns++) {
    for (const reader of readers) {
      if (reader.isOver) reader.connect()
      reader.drain(Number.POSITIVE_INFINITY)
    }
    while (disk.writes.size + disk.asks.size > 0) {
      disk.writes.settle(0)
      disk.asks.settle(0)
    }
    await turn()
    if (log.last === log.end && readers.every(({ ids }) => ids.at(-1) === log.last)) break
  }
  assert.equal(from.violations, [])
  for (const reader of readers) reader.check(log.last)
  for (const reader of readers) reader.leave()
  await turn()
  assert.equal(hub.counts(), {})
}

test('readers that come, pause and leave get each event once, in order, and only what the disk has', () =>
  forSeeds(ROUNDS, play))

test.run()
