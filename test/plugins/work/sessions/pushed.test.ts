import { request as httpRequest, type IncomingMessage } from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, SseParser } from '../../../../client/sse.js'
import { systemClock, turn } from '../../../../kernel/plugin.js'
import { RawFrames } from '../../../../plugins/work/sessions/read/raw-frames.js'
import { eventually, openWorld } from '../../../fixtures/session-world.js'
import { memoryLog } from './memory-log.js'

const FROM_START = {
  lastEventId: undefined,
  afterSequence: undefined,
  epoch: undefined,
  generation: undefined,
  limit: undefined,
}

/** A log of a journal in memory, and readers of it that have all of its events. */
function scene(durable: () => Promise<void> = async () => {}) {
  let last = 0
  const { log, row } = memoryLog({
    get last() {
      return last
    },
    append: (payloads: readonly Uint8Array[]) => payloads.map(() => ++last),
    written: async () => {},
  })
  const abort = new AbortController()
  const asked = { count: 0 }
  const source = {
    ...{ log, clock: systemClock(), row: () => row, signal: abort.signal },
    durable: () => {
      asked.count++
      return durable()
    },
  }
  const add = (text: string) => log.append({ type: 'system', turnId: 't', content: { text } })
  /** Sends to a list until that has as many frames as it takes. */
  const reader = (most = Number.POSITIVE_INFINITY) => {
    const frames = new RawFrames(source, FROM_START)
    const texts: string[] = []
    const seen = { frames, texts, isDone: false }
    const note = (frame: unknown) => {
      const text = Buffer.from(frame as Uint8Array).toString()
      texts.push(...[...text.matchAll(/"text":"(\w+)"/g)].map(([, word = '']) => word))
    }
    void frames
      .pushTo(frame => {
        note(frame)
        return texts.length < most
      })
      .then(() => {
        seen.isDone = true
      })
    return { ...seen, done: () => seen.isDone, note }
  }
  return { add, asked, abort, log, row, reader }
}

const turns = async (count = 5) => {
  for (let i = 0; i < count; i++) await turn()
}

test('one question whether the disk has all serves all readers that an event wakes', async () => {
  const { add, asked, reader } = scene()
  const readers = [reader(), reader(), reader()]
  add('one')
  await turns()
  assert.is(asked.count, 1)
  add('two')
  await turns()
  assert.is(asked.count, 2)
  for (const { texts, done } of readers) assert.equal([texts, done()], [['one', 'two'], false])
})

test('a reader whose socket is full gets no more, and goes on where it stood', async () => {
  const { add, reader } = scene()
  const [full, other] = [reader(1), reader()]
  add('one')
  await turns()
  add('two')
  await turns()
  assert.equal([full.texts, full.done()], [['one'], true])
  assert.equal(other.texts, ['one', 'two'])
  const { value } = await full.frames.next()
  full.note(value)
  assert.equal(full.texts, ['one', 'two'])
})

test('an event that comes while the disk is asked waits for the next answer', async () => {
  const answers: (() => void)[] = []
  const { add, reader } = scene(() => new Promise(resolve => answers.push(resolve)))
  const { texts, done } = reader()
  add('one')
  await turns()
  add('two')
  await turns()
  answers.shift()?.()
  await turns()
  assert.equal([texts, answers.length], [['one'], 1])
  answers.shift()?.()
  await turns()
  assert.equal([texts, done()], [['one', 'two'], false])
})

test('nothing is sent that the disk may not have: the reader is served by the next call', async () => {
  const { add, reader } = scene(() => Promise.reject(new Error('the disk')))
  const one = reader()
  add('one')
  await turns()
  assert.equal([one.texts, one.done()], [[], true])
})

test('a change of state, the end of the reader and unread events end the pushing', async () => {
  const { add, abort, log, row, reader } = scene()
  const stopped = reader()
  log.wake()
  await turns()
  assert.is(stopped.done(), false)
  Object.assign(row, { state: 'stopped' })
  log.wake()
  await turns()
  assert.is(stopped.done(), true)
  Object.assign(row, { state: 'active' })
  const gone = reader()
  abort.abort()
  await turns()
  assert.is(gone.done(), true)
  add('one')
  const late = reader()
  await turns()
  assert.equal([late.texts, late.done()], [[], true])
})

test('over the socket each reader gets each event once and in order, a paused one later', async () => {
  const world = await openWorld({ listen: ['socket'], checkReplies: false })
  await world.agent('plain', { flags: '--load' })
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const read = async (after: number) => {
    const frames: ServerEvent[] = []
    const parser = new SseParser()
    const seen = { frames, isOver: false, response: undefined as IncomingMessage | undefined }
    const url = `${at}/stream?frames=raw&after_sequence=${after}`
    httpRequest({ socketPath: path.join(world.home, 'daemon.sock'), path: url }, response => {
      seen.response = response.setEncoding('utf8')
      response.on('data', (text: string) => frames.push(...parser.push(text)))
      response.on('end', () => {
        seen.isOver = true
      })
    }).end()
    await eventually(async () => seen.response !== undefined, 'the head of the stream')
    return seen
  }
  const readers = [await read(0), await read(0), await read(2), await read(3)]
  const [slow] = readers
  await world.prompt(at, 'say b')
  slow?.response?.pause()
  const text = 'x'.repeat(12_000)
  const calls = Array.from({ length: 60 }, (_, n) => {
    const update = { sessionUpdate: 'tool_call', toolCallId: `c${n}`, title: `call ${n}`, rawInput: { text } }
    return `update ${JSON.stringify(update)}`
  })
  await world.prompt(at, calls.join('\n'))
  const { length } = await world.events(at)
  await eventually(async () => readers[1]?.frames.length === length, 'all events at a reader')
  assert.ok((slow?.frames.length ?? 0) < length)
  slow?.response?.resume()
  await world.prompt(at, 'say c')
  await world.kernel.request('POST', `${at}/stop`)
  await eventually(async () => readers.every(({ isOver }) => isOver), 'the ends')
  const ids = (await world.events(at)).map(({ sequence }) => String(sequence))
  for (const [i, after] of [0, 0, 2, 3].entries()) {
    assert.equal(
      readers[i]?.frames.map(({ id }) => id),
      ids.slice(after),
      `reader ${i}`,
    )
    assert.is(readers[i]?.frames.at(-1)?.event, 'session_stopped')
  }
  await world.close()
})

test.run()
