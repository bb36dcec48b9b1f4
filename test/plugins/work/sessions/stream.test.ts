import { type ClientRequest, request as httpRequest } from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, SseParser } from '../../../../client/sse.js'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('plain', { flags: '--load' })
})
test.after(() => world.close())

/** A reader of a stream: what it got so far, and whether the daemon ended it. */
interface Reader {
  readonly frames: Reply[]
  readonly ended: () => boolean
  close(): void
  pause(): void
}

function read(url: string, lastEventId?: string): Reader {
  const frames: ServerEvent[] = []
  const parser = new SseParser()
  let ended = false
  let stop: ClientRequest
  const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const reader = {
    frames,
    ended: () => ended,
    close: () => stop.destroy(),
    pause: () => {},
  }
  stop = httpRequest({ socketPath: path.join(world.home, 'daemon.sock'), path: url, headers }, response => {
    reader.pause = () => response.pause()
    response.setEncoding('utf8')
    response.on('data', (text: string) => frames.push(...parser.push(text)))
    response.on('end', () => {
      ended = true
    })
    response.on('error', () => {})
  })
  stop.on('error', () => {})
  stop.end()
  return reader
}

const names = (reader: Reader) => reader.frames.map(frame => frame.event)
const ended = (reader: Reader) => eventually(async () => reader.ended(), 'the end of the stream')
const has = (reader: Reader, count: number) => eventually(async () => reader.frames.length >= count, `${count} frames`)
const stop = (at: string) => world.kernel.request('POST', `${at}/stop`)

test('raw frames: stored events live, resumed after an id, ended by one session_stopped', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const reader = read(`${at}/stream?frames=raw`)
  await has(reader, 3)
  await world.prompt(at, 'say b')
  await has(reader, 6)
  assert.equal(names(reader), ['user_message', 'agent_message', 'done', 'user_message', 'agent_message', 'done'])
  assert.equal(
    reader.frames.map(frame => frame.id),
    ['1', '2', '3', '4', '5', '6'],
  )
  assert.equal(reader.frames[4].data, (await world.events(at))[4], 'the data is the event')
  const resumed = read(`${at}/stream?frames=raw`, '4')
  const newest = read(`${at}/stream?frames=raw&limit=1`)
  const after = read(`${at}/stream?frames=raw&after_sequence=5`)
  await has(resumed, 2)
  await stop(at)
  for (const one of [reader, resumed, newest, after]) await ended(one)
  assert.equal(names(resumed), ['agent_message', 'done', 'session_stopped'])
  assert.equal(names(newest), ['done', 'session_stopped'])
  assert.equal(names(after), ['done', 'session_stopped'])
  assert.is(names(reader).filter(name => name === 'session_stopped').length, 1)
  const late = read(`${at}/stream?frames=raw`, '7')
  await ended(late)
  assert.equal(names(late), ['session_stopped'], 'drained already: one, then the end')
  assert.is(late.frames[0].data.stop_reason, 'user_canceled')
})

test('raw frames: a reader from any position gets each event once, in order, also after a removed one', async () => {
  const { at } = await world.session('plain')
  const text = 'x'.repeat(1500)
  const calls = Array.from({ length: 20 }, (_, n) => {
    const update = { sessionUpdate: 'tool_call', toolCallId: `c${n}`, title: `call ${n}`, rawInput: { text } }
    return `update ${JSON.stringify(update)}`
  })
  const idsOf = (reader: Reader) => reader.frames.map(frame => frame.id)
  const readFrom = async (places: readonly number[]) => {
    const stored = await world.events(at)
    for (const after of places) {
      const reader = read(`${at}/stream?frames=raw&after_sequence=${after}`)
      const rest = stored.filter(event => event.sequence > after)
      await has(reader, rest.length)
      assert.equal(
        idsOf(reader),
        rest.map(event => String(event.sequence)),
        `after ${after}`,
      )
      assert.equal(reader.frames.at(-1).data, rest.at(-1), `data after ${after}`)
      reader.close()
    }
  }
  await world.prompt(at, calls.join('\n'))
  const sent = { text: 'say second', message_id: 'second' }
  const second = await world.kernel.request('POST', `${at}/prompt`, sent)
  const id = second.body.prompt.new_turn_id
  await world.until(at, event => event.turn_id === id && event.type === 'done')
  await readFrom([0, 1, 7, 13, 19, 0])
  const fence = { expected_epoch: null, expected_generation: null, expected_max_sequence: null }
  const body = { message_id: 'second', idempotency_key: 'cut', ...fence }
  const cut = await world.kernel.request('POST', `${at}/rewind`, body)
  assert.is(cut.status, 200, JSON.stringify(cut.body))
  await world.prompt(at, 'say third')
  assert.not((await world.events(at)).some(event => event.turn_id === id))
  await readFrom([0, 7, 19, 0])
  await stop(at)
})

test('transcript frames: a snapshot, then new and changed entries', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const reader = read(`${at}/stream`)
  await has(reader, 1)
  const [snapshot] = reader.frames
  assert.is(snapshot.event, 'transcript_snapshot')
  assert.equal([snapshot.data.reset, snapshot.data.has_older, snapshot.id], [false, false, '3'])
  assert.equal(
    snapshot.data.entries.map((entry: Reply) => entry.message.role),
    ['user', 'assistant'],
  )
  const call = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'Look', kind: 'read', status: 'in_progress' }
  const [first, second] = [world.gate(), world.gate()]
  const prompted = world.prompt(at, `say b\n${first.line}\nupdate ${JSON.stringify(call)}\n${second.line}\nsay c`)
  const shows = (text: string) =>
    eventually(async () => JSON.stringify(reader.frames.slice(1)).includes(text), `${text} in the stream`)
  await shows('"b\\n"')
  await first.open()
  await shows('"dynamic-tool"')
  await second.open()
  await prompted
  await stop(at)
  await ended(reader)
  assert.is(names(reader).at(-1), 'session_stopped')
  const deltas = reader.frames.filter(frame => frame.event === 'transcript_delta')
  assert.ok(deltas.length >= 3, `${deltas.length} deltas`)
  const entries = new Map<string, Reply>()
  for (const frame of [snapshot, ...deltas])
    for (const entry of frame.data.entries) entries.set(entry.message.id, entry)
  const page = (await world.kernel.request('GET', `${at}/transcript`)).body
  assert.equal([...entries.values()], page.entries, 'the pieces make the page')
  assert.equal(
    page.entries.at(-2).message.parts.map((part: Reply) => part.type),
    ['text', 'dynamic-tool', 'text'],
  )
  assert.ok(deltas.every(frame => frame.id === String(frame.data.cursor)))
})

test('transcript frames: resumed with a fence, else a snapshot with the reason', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const { epoch, generation, max_sequence: last } = (await world.kernel.request('GET', `${at}/transcript`)).body
  await world.prompt(at, 'say b')
  const first = async (query: string, id?: string) => {
    const reader = read(`${at}/stream?${query}`, id)
    await has(reader, 1)
    reader.close()
    return reader.frames[0]
  }
  const fence = `epoch=${epoch}&generation=${generation}`
  const resumed = await first(fence, String(last))
  assert.is(resumed.event, 'transcript_delta')
  assert.equal(
    resumed.data.entries.map((entry: Reply) => entry.message.parts[0].text),
    ['say b', 'b\n'],
  )
  const middle = await first(fence, String(last - 1))
  assert.equal(middle.data.entries[0].message.parts[0].text, 'a\n', 'the entry that was open is sent whole')
  for (const [query, id, reason] of [
    ['', String(last), 'fence_missing'],
    [`epoch=${epoch + 1}&generation=${generation}`, String(last), 'epoch_mismatch'],
    [`epoch=${epoch}&generation=${generation + 1}`, String(last), 'generation_mismatch'],
    [fence, '100000', 'sequence_reset'],
  ] as const) {
    const frame = await first(query, id)
    assert.equal([frame.event, frame.data.reset, frame.data.reason], ['transcript_snapshot', true, reason])
  }
  await stop(at)
})

test('raw frames: resumed with a valid fence, else from the beginning or the newest requested', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const { epoch, generation } = (await world.kernel.request('GET', `${at}/transcript`)).body
  const first = async (query: string, id?: string) => {
    const reader = read(`${at}/stream?frames=raw&${query}`, id)
    await has(reader, 1)
    reader.close()
    return reader.frames[0].id
  }
  const fence = (e = epoch, g = generation) => `epoch=${e}&generation=${g}`
  for (const [query, id, expected] of [
    [fence(), '2', '3'],
    ['', '2', '3'],
    [`${fence()}&after_sequence=1`, undefined, '2'],
    [fence(epoch + 1), '2', '1'],
    [fence(epoch, generation + 1), '2', '1'],
    [fence(), '100', '1'],
    [`${fence(epoch, generation + 1)}&limit=1`, '2', '3'],
    [fence(), 'odd', '1'],
  ] as const) {
    assert.is(await first(query, id), expected, `${query} ${id}`)
  }
})

test('readers with random starts and delays end with the same transcript', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const running = world.prompt(
    at,
    Array.from({ length: 12 }, (_, i) => `say ${i}\nthink ${i}\nsleep ${20 + i * 5}`).join('\n'),
  )
  const readers: Reader[] = []
  for (let i = 0; i < 12; i++) {
    readers.push(read(`${at}/stream`))
    await new Promise(resolve => setTimeout(resolve, 20 + i * 7))
  }
  await running
  await stop(at)
  const page = (await world.kernel.request('GET', `${at}/transcript`)).body.entries
  for (const reader of readers) {
    await ended(reader)
    const entries = new Map<string, Reply>()
    for (const frame of reader.frames)
      for (const entry of frame.data.entries ?? []) entries.set(entry.message.id, entry)
    assert.equal([...entries.values()], page)
    const cursors = reader.frames.map(frame => Number(frame.id))
    assert.equal(
      cursors,
      cursors.toSorted((a, b) => a - b),
    )
  }
})

/** A prompt answered as a stream: headers, and the types and data of its frames. */
async function prompted(at: string, body: object): Promise<{ headers: Reply; frames: Reply[]; text: string }> {
  const text = JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const options = { socketPath: path.join(world.home, 'daemon.sock'), path: `${at}/prompt`, method: 'POST', headers }
    httpRequest(options, response => {
      let received = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        received += piece
      })
      response.on('end', () => {
        const frames = new SseParser().push(received).map(({ data }) => data)
        resolve({ headers: response.headers, frames, text: received })
      })
    })
      .on('error', reject)
      .end(text)
  })
}

test('a prompt answered as a stream gives the turn as one message of the AI SDK', async () => {
  const { at } = await world.session('plain')
  const tool = (fields: object) =>
    `update ${JSON.stringify({ sessionUpdate: 'tool_call', toolCallId: 'c', ...fields })}`
  const lines = [
    'think hm',
    'say one',
    tool({ title: 'T', kind: 'read', status: 'pending', rawInput: { x: 1 } }),
    tool({ status: 'completed', rawOutput: 'out' }),
    tool({ toolCallId: 'd', title: 'D', status: 'failed' }),
    'update {"sessionUpdate":"usage_update","used":5,"size":10}',
    'say two',
  ]
  const { headers, frames } = await prompted(at, { text: lines.join('\n'), idempotency_key: 'k' })
  assert.is(headers['x-vercel-ai-ui-message-stream'], 'v1')
  assert.match(headers['content-type'], /^text\/event-stream/)
  assert.equal(
    frames.map(({ type }) => type),
    [
      ...['start', 'start-step', 'reasoning-start', 'reasoning-delta', 'reasoning-end'],
      ...['text-start', 'text-delta', 'text-end', 'tool-input-available', 'tool-output-available'],
      ...['tool-input-available', 'tool-output-error', 'text-start', 'text-delta', 'message-metadata', 'text-end'],
      ...['finish-step', 'finish', undefined],
    ],
  )
  assert.is(frames.at(-1), '[DONE]')
  const of = (type: string) => frames.filter(frame => frame.type === type)
  assert.equal(
    of('text-delta').map(({ delta }) => delta),
    ['one\n', 'two\n'],
  )
  assert.equal([of('tool-input-available')[0].input, of('tool-output-available')[0].output], [{ x: 1 }, 'out'])
  const again = await prompted(at, { text: lines.join('\n'), idempotency_key: 'k' })
  assert.is(JSON.parse(again.text).prompt.replayed, true, 'a repetition has a receipt')

  const idle = () => world.kernel.request('POST', `${at}/wait`, { timeout_ms: 10_000 })
  await idle()
  const failed = await prompted(at, { text: 'say x\nerror -32000 no model' })
  assert.equal([failed.frames.at(-2).type, /no model/.test(failed.frames.at(-2).errorText)], ['error', true])
  await idle()
  const canceled = prompted(at, { text: 'say x\nhang' })
  await eventually(async () => {
    const events = await world.events(at, '?type=agent_message')
    return events.filter(event => event.content.text === 'x\n').length === 2
  }, 'the words of the turn')
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.equal(
    (await canceled).frames.slice(-2).map(frame => frame.type ?? frame),
    ['abort', '[DONE]'],
  )
  await stop(at)
})

test('a slow reader and a disconnected one do not affect others', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const slow = read(`${at}/stream?frames=raw`)
  const gone = read(`${at}/stream?frames=raw`)
  await has(slow, 3)
  await has(gone, 3)
  slow.pause()
  gone.close()
  const quick = read(`${at}/stream?frames=raw`)
  // It ends, though nobody reads one of the streams.
  await world.prompt(at, 'flood 20000')
  await stop(at)
  await ended(quick)
  assert.is(quick.frames.at(-1).event, 'session_stopped')
  slow.close()
})

test('the stream of a deleted session ends', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say a')
  const reader = read(`${at}/stream`)
  await has(reader, 1)
  assert.is((await world.kernel.request('DELETE', at)).status, 204)
  await ended(reader)
})

test('a very long message shows its beginning and its newest parts on every read', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say before')
  const { max_sequence: before } = (await world.kernel.request('GET', `${at}/transcript`)).body
  await world.prompt(at, 'say the beginning\ntools 4000\nsay the end')
  const page = async () => (await world.kernel.request('GET', `${at}/transcript?limit=3`)).body
  const { entries } = await page()
  const roles = entries.map(({ message }: Reply) => message.role)
  assert.equal(roles, ['assistant', 'user', 'assistant'])
  const { message, start_sequence } = entries[2]
  assert.is(start_sequence, before + 2)
  const { parts } = message
  assert.ok(parts.length <= 2001, `${parts.length}`)
  assert.equal([parts[0].text, parts.at(-1).text], ['the beginning\n', 'the end\n'])
  assert.equal([parts.at(-2).title, parts.at(-2).state], ['tool 3999', 'output-available'])
  assert.is(parts.filter(({ type }: Reply) => type === 'data-omitted').length, 1)
  assert.equal(message.metadata.status, 'completed')
  // Who follows the stream folds every event of it.
  const reader = read(`${at}/stream?after_sequence=${before}`)
  const latest = () =>
    reader.frames.flatMap(({ data }) => data.entries ?? []).findLast(one => one.message.id === message.id)
  await eventually(async () => latest()?.message.metadata?.status === 'completed', 'the end of the turn')
  assert.ok(JSON.stringify(latest().message) === JSON.stringify(message), 'the same in the stream')
  reader.close()
  const recap = (await world.kernel.request('GET', `${at}/recap`)).body.recap.recent_messages
  assert.ok(JSON.stringify(recap.at(-1)) === JSON.stringify(message), 'the same in the recap')
  await world.restart()
  const again = (await page()).entries.find((one: Reply) => one.message.id === message.id)
  assert.ok(again && JSON.stringify(again) === JSON.stringify(entries[2]), 'the same after a start')
})

test.run()
