import http from 'node:http'
import net from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { defineErrors, definePlugin, type Frame, type Plugin, routeOf, streamed } from '../../../kernel/plugin.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { type Doors, openDoors, pause, until } from './doors.js'

const Errors = defineErrors({ source_gone: { status: 404, message: 'the source is gone' } })
const route = routeOf<unknown>(describe('Test'))

/** What the sources of a test tell of themselves; they outlive the plugin that serves them. */
class World {
  pulled = 0
  stopped = 0
  /** Numbers written so far; a `count` stream gives those after Last-Event-ID as they come. */
  count = 0
}

type Source = (world: World, signal: AbortSignal, after: number) => AsyncIterable<Frame>

const sources: Record<string, Source> = {
  async *count(world, signal, after) {
    for (let n = after + 1; !signal.aborted; n++) {
      while (n > world.count) {
        if (signal.aborted) return
        await pause(1)
      }
      yield { id: String(n), event: 'n', data: { n } }
    }
  },
  async *fast(world) {
    for (;;) {
      world.pulled++
      yield { data: 'x'.repeat(64 * 1024) }
    }
  },
  async *deaf(world, signal) {
    signal.addEventListener('abort', () => world.stopped++)
    yield { data: 1 }
    await new Promise(() => {})
  },
  async *breaks() {
    yield { id: '1', data: 1 }
    throw new Error('the password is hunter2')
  },
  async *refuses() {
    yield { id: '1', data: 1 }
    throw Errors.source_gone()
  },
  async *huge() {
    yield { data: 'x'.repeat(33 * 1024 * 1024) }
  },
  async *strange() {
    yield { id: '1\nevent: forged', event: 'a\r\nid: 9', data: 'b\n\nevent: forged' }
    yield { data: undefined }
  },
}

function streaming(name: string, world: World): Plugin {
  return definePlugin({ name, version: '1.0.0', service: async () => class {} }).surface({
    errors: name === 'numbers' ? [Errors] : [],
    routes: Object.entries(sources).map(([path, source]) =>
      route({
        method: 'GET',
        path: `/api/${name}/${path}`,
        summary: path,
        headers: { 'Last-Event-ID': { required: false } },
        contentType: 'text/event-stream',
        replies: { 200: v.unknown() },
        frames: v.looseObject({ data: v.optional(v.unknown()) }),
        handle: (_self, { headers, signal }) => streamed(source(world, signal, Number(headers['last-event-id'] ?? 0))),
      }),
    ),
  }) as Plugin
}

interface Event {
  id?: string
  event?: string
  data: string
}

/** An EventSource as the standard has it, in short: it reads until the stream ends and gives back why. */
function read(doors: Doors, url: string, lastEventId: string | undefined, onEvent: (event: Event) => void) {
  let request: http.ClientRequest | undefined
  const ended = new Promise<'ended' | 'cut'>((resolve, reject) => {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    request = http.get({ socketPath: doors.socketPath, path: url, headers, agent: false }, response => {
      if (response.statusCode !== 200) reject(new Error(`${response.statusCode}`))
      let rest = ''
      response.setEncoding('utf8')
      response.on('data', text => {
        const blocks = (rest + text).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) {
          const fields = block.split('\n').map(line => /^([^:]*): ?(.*)$/.exec(line)?.slice(1) ?? [])
          const event = Object.fromEntries(fields.filter(([name]) => name !== ''))
          if (Object.keys(event).length > 0) onEvent(event as unknown as Event)
        }
      })
      response.on('end', () => resolve('ended'))
      response.on('error', () => resolve('cut'))
    })
    request.on('error', reject)
  })
  return { ended, stop: () => request?.destroy() }
}

/** Follows a stream over every `closing`, as a client does, until `last` has come; ids in the order they came. */
async function follow(doors: Doors, url: string, last: number): Promise<{ ids: string[]; resumed: number }> {
  const ids: string[] = []
  let resumed = -1
  while (ids.at(-1) !== String(last)) {
    let after = false
    resumed++
    const reader = read(doors, url, ids.at(-1), event => {
      if (after) throw new Error('a frame after closing')
      if (event.event === 'closing') after = true
      else if (event.event === 'n') ids.push(event.id as string)
      if (event.id === String(last)) reader.stop()
    })
    await reader.ended
  }
  return { ids, resumed }
}

test('a stream survives the replacement of another plugin; its own ends it, and the client resumes without gap', async () => {
  const world = new World()
  const doors = await openDoors([streaming('numbers', world), streaming('other', new World())])
  const { host } = doors.kernel
  const last = 400
  const readers = [1, 2, 3].map(() => follow(doors, '/api/numbers/count', last))
  const timer = setInterval(() => {
    if (world.count < last) world.count += 5
  }, 5)
  await until(() => world.count > 50 && host.streams().numbers === 3)
  await host.reload(streaming('other', new World()))
  assert.equal(host.streams(), { numbers: 3 })
  for (let round = 0; round < 3; round++) {
    await host.reload(streaming('numbers', world))
  }
  const wanted = Array.from({ length: last }, (_, i) => String(i + 1))
  for (const { ids, resumed } of await Promise.all(readers)) {
    assert.equal(ids, wanted)
    assert.ok(resumed > 0 && resumed <= 3, `${resumed} resumptions`)
  }
  clearInterval(timer)
  await until(() => Object.keys(host.streams()).length === 0)
  assert.equal(host.faults(), [])
  await doors.close()
})

test('a slow reader holds back its source, which still ends with its plugin', async () => {
  const world = new World()
  const doors = await openDoors([streaming('numbers', world)])
  const socket = net.connect(doors.socketPath)
  socket.pause()
  socket.on('error', () => {})
  socket.write('GET /api/numbers/fast HTTP/1.1\r\nhost: x\r\n\r\n')
  await until(() => world.pulled > 0)
  let before = -1
  while (before !== world.pulled) {
    before = world.pulled
    await pause(100)
  }
  assert.ok(world.pulled < 40, `${world.pulled} frames of 64 KiB for nobody`)
  await doors.kernel.host.unload('numbers')
  assert.equal(doors.kernel.host.streams(), {})
  socket.destroy()
  await doors.close()
})

test('a source is signaled at once when its reader or plugin leaves, also during an endless wait', async () => {
  const world = new World()
  const doors = await openDoors([streaming('numbers', world)])
  let frames = 0
  const reader = read(doors, '/api/numbers/deaf', undefined, () => frames++)
  await until(() => frames === 1)
  reader.stop()
  await reader.ended.catch(() => {})
  await until(() => world.stopped === 1)
  const events: Event[] = []
  const second = read(doors, '/api/numbers/deaf', undefined, event => events.push(event))
  await until(() => events.length === 1)
  await doors.kernel.host.unload('numbers')
  assert.is(await second.ended, 'ended')
  assert.is(events.at(-1)?.event, 'closing')
  assert.is(world.stopped, 2)
  assert.equal(doors.kernel.host.faults(), [])
  await doors.close()
})

test('a source that throws ends its stream with an error frame and is named; a refusal is no failure', async () => {
  const doors = await openDoors([streaming('numbers', new World())])
  const lastOf = async (path: string) => {
    const events: Event[] = []
    assert.is(await read(doors, `/api/numbers/${path}`, undefined, event => events.push(event)).ended, 'ended')
    const last = events.at(-1)
    assert.is(last?.event, 'error')
    return JSON.parse(last?.data ?? '')
  }
  assert.equal(await lastOf('refuses'), { error: 'the source is gone', code: 'source_gone' })
  assert.equal(doors.kernel.host.faults(), [])
  const broken = await lastOf('breaks')
  assert.is(broken.code, 'internal')
  assert.not.match(JSON.stringify(broken), /hunter2/)
  assert.is((await lastOf('huge')).code, 'frame_too_large')
  assert.equal(
    doors.kernel.host.faults().map(({ owner, where }) => `${owner} ${where}`),
    ['numbers stream /api/numbers/breaks', 'numbers stream /api/numbers/huge'],
  )
  await doors.close()
})

test('ids, names and data cannot forge a frame', async () => {
  const doors = await openDoors([streaming('numbers', new World())])
  const events: Event[] = []
  await read(doors, '/api/numbers/strange', undefined, event => events.push(event)).ended
  assert.equal(events, [
    { id: '1 event: forged', event: 'a  id: 9', data: JSON.stringify('b\n\nevent: forged') },
    { data: 'null' },
  ])
  await doors.close()
})

test('a silent stream is kept alive by the kernel clock', async () => {
  const clock = new VirtualClock()
  const doors = await openDoors([streaming('numbers', new World())], clock)
  let text = ''
  const socket = net.connect(doors.socketPath)
  socket.on('data', data => {
    text += data
  })
  socket.write('GET /api/numbers/deaf HTTP/1.1\r\nhost: x\r\n\r\n')
  await until(() => text.includes('data: 1'))
  await clock.advance(14_999)
  await pause(20)
  assert.not.match(text, '\n: keep-alive')
  await clock.advance(15_001)
  await until(() => text.split('\n: keep-alive').length === 3)
  socket.destroy()
  await until(() => Object.keys(doors.kernel.host.streams()).length === 0)
  await doors.close()
})

test.run()
