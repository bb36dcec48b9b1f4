import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { type Actor, definePlugin, ok, operator, type PluginKernel, Requests, routeOf } from '../../../kernel/plugin.js'
import { ask, type Doors, openDoors } from './doors.js'

const somebody: Actor = {
  kind: 'daemon',
  id: 'guest.somebody',
  owner: { kind: 'guest', id: 'somebody' },
  source: { kind: 'daemon', id: 'system' },
}

const needs = { request: Requests }
let kernel: PluginKernel<typeof needs>
let doors: Doors
/** Done within a request, with a header that could name its caller. */
let meanwhile: (header: string | undefined) => Promise<unknown> = async () => undefined

const route = routeOf<unknown>(describe('Test'))
const plugin = definePlugin({
  name: 'guest',
  version: '1.0.0',
  requires: needs,
  service: async () =>
    class {
      constructor(own: PluginKernel<typeof needs>) {
        kernel = own
      }
    },
}).surface({
  routes: [
    route({
      method: 'GET',
      path: '/api/who',
      summary: 'Who asks',
      headers: { 'x-svc-acting': { required: false } },
      replies: { 200: v.object({ who: v.string(), more: v.unknown() }) },
      handle: async (_self, { actor, headers }) =>
        ok({ who: `${actor.id} ${actor.owner.id}`, more: await meanwhile(headers['x-svc-acting']) }),
    }),
  ],
})

test.before(async () => {
  doors = await openDoors([plugin])
})
test.after(() => doors.close())

const who = async (as: Actor) => JSON.parse((await kernel.needs.request({ method: 'GET', url: '/api/who' }, as)).body)
const direct = 'daemon-control daemon-control'

test('a plugin makes requests on behalf of several callers at once', async () => {
  const [one, other] = await Promise.all([who(somebody), who(operator)])
  assert.equal([one.who, other.who], ['guest.somebody somebody', direct])
})

test('such a request has its caller in no header, and no header gives it to another, on any transport', async () => {
  meanwhile = async header => {
    meanwhile = async () => undefined
    assert.is(header, undefined)
    const headers = { 'x-svc-acting': 'act_1' }
    const replies = [
      await ask(doors.where.socket, '/api/who', { headers }),
      await ask(doors.where.tcp, '/api/who', { headers }),
    ]
    return replies.map(reply => reply.body.who)
  }
  const first = await who(somebody)
  assert.equal(first, { who: 'guest.somebody somebody', more: [direct, direct] })
})

test.run()
