import http from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import { type Carrier, Streams } from '../../../../kernel/platform.js'
import { definePlugin, type PluginKernel, routeOf, streamed } from '../../../../kernel/plugin.js'
import { base, streams } from '../../../../plugins/index.js'
import { bootBare } from '../../../harness/kernel.js'
import { ask, type Doors, openDoors, until } from '../../../kernel/http/doors.js'

const TICKS = '/api/ticks'

/** Gives one frame, then waits until its reader goes. */
const ticks = definePlugin({ name: 'ticks', version: '1.0.0' }).surface({
  routes: [
    routeOf<unknown>()({
      method: 'GET',
      path: TICKS,
      with: [describe('Test')],
      summary: 'ticks',
      contentType: 'text/event-stream',
      frames: v.object({ data: v.number() }),
      replies: { 200: v.unknown() },
      handle: async (_, { signal }) =>
        streamed(
          (async function* () {
            yield { data: 1 }
            await new Promise(resolve => signal.addEventListener('abort', resolve))
          })(),
        ),
    }),
  ],
})

/** Opens the stream; what has come of it grows. */
async function read({ socketPath }: Doors): Promise<{ text: string; over: boolean }> {
  const seen = { text: '', over: false }
  http.get({ socketPath, path: TICKS }, response => {
    response.setEncoding('utf8').on('data', piece => (seen.text += piece))
    response.on('end', () => (seen.over = true))
  })
  await until(() => seen.text.includes('data: 1'))
  return seen
}

test('a streaming route is refused without the plugin, and another route is served', async () => {
  const plain = routeOf<unknown>()({
    method: 'GET',
    path: '/api/plain',
    with: [describe('Test')],
    summary: 'plain',
    replies: { 204: null },
    handle: () => ({ status: 204, body: undefined }),
  })
  const other = definePlugin({ name: 'other', version: '1.0.0' }).surface({ routes: [plain] })
  const svc = await bootBare({ plugins: [...base.filter(({ name }) => name !== 'streams'), ticks, other] })
  const refused = await svc.request('GET', TICKS)
  assert.equal([refused.status, refused.body.code], [503, 'reloading'])
  assert.is((await svc.request('GET', '/api/plain')).status, 204)
  assert.equal(svc.kernel.host.streams(), {})
  await svc.close()
})

test('a reload of the plugin ends all streams, and they are reopened after it', async () => {
  const doors = await openDoors([ticks])
  const before = await read(doors)
  assert.equal(doors.kernel.host.streams(), { ticks: 1 })
  await doors.kernel.host.reload(streams)
  await until(() => before.over)
  assert.match(before.text, /event: closing\ndata: \{\}\n\n$/)
  const after = await read(doors)
  assert.is(after.over, false)
  assert.equal(doors.kernel.host.streams(), { ticks: 1 })
  await doors.close()
  assert.match(after.text, /event: closing\ndata: \{\}\n\n$/)
})

test('another plugin can replace the sender of streams', async () => {
  const carrier: Carrier = {
    enter:
      ({ response }) =>
      async ({ stream }, _told, over) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const all = async () => {
          for await (const { data } of stream as AsyncIterable<{ data: number }>) response.end(`own ${data}`)
        }
        void all().finally(over)
      },
    end: () => {},
    counts: () => ({ own: 7 }),
  }
  const own = definePlugin({
    name: 'streams',
    version: '2.0.0',
    requires: { streams: Streams },
    service: async () =>
      class {
        constructor({ needs, scope }: PluginKernel<{ streams: typeof Streams }>) {
          scope.defer('streams', needs.streams(carrier))
        }
      },
  }).surface({})
  const doors = await openDoors([own, ticks])
  assert.is((await ask(doors.where.socket, TICKS)).text, 'own 1')
  assert.equal(doors.kernel.host.streams(), { own: 7 })
  await doors.close()
})

test.run()
