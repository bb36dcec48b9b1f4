import fastify from 'fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Call } from '../../../kernel/http/admission.js'
import { bodies, entrance, errors, routed, unrouted } from '../../../kernel/http/pipelines.js'
import { decoderOf } from '../../../kernel/http/request.js'
import type { PipelineContext } from '../../../kernel/http/serve-route.js'
import { type Fault, KernelErrors, operator, type Route } from '../../../kernel/plugin.js'

// The context is read by requests alone, and none is made here.
const context = { entrance: { before: () => {} } } as unknown as PipelineContext
const parts = { entrance, errors, bodies, routed, unrouted }

/** Why an instance with these parts, registered in this order, does not boot; undefined when it does. */
async function refusal(
  ...order: readonly (keyof typeof parts)[]
): Promise<{ code: string; message: string } | undefined> {
  const app = fastify()
  for (const name of order) app.register(parts[name] as typeof bodies, { context, kind: 'json' })
  return app.ready().then(
    () => undefined,
    error => error,
  )
}

test('a part registered without its dependency fails by name', async () => {
  for (const [order, missing] of [
    [['errors'], 'entrance'],
    [['entrance', 'bodies'], 'errors'],
    [['entrance', 'errors', 'routed'], 'bodies'],
    [['entrance', 'errors', 'unrouted'], 'bodies'],
    [['bodies', 'errors', 'entrance'], 'errors'],
  ] as const) {
    const refused = await refusal(...order)
    assert.is(refused?.code, 'FST_ERR_PLUGIN_DEPENDENCY_NOT_REGISTERED', order.join(', '))
    assert.match(refused?.message ?? '', `The dependency '${missing}' of plugin '`, order.join(', '))
  }
})

test('the parts of a pipeline boot in order, and their settings apply to later parts', async () => {
  assert.is(await refusal('entrance', 'errors', 'bodies', 'routed', 'unrouted'), undefined)
  const app = fastify()
  for (const name of ['entrance', 'errors', 'bodies'] as const)
    app.register(parts[name] as typeof bodies, { context, kind: 'json' })
  await app.ready()
  assert.ok(app.hasRequestDecorator('arrival') && app.hasRequestDecorator('call'))
  assert.ok(app.hasContentTypeParser('application/json') && !app.hasContentTypeParser('text/plain'))
})

test('a handler gets the first of repeated headers that its route declares, and a copy of its request has the signal too', () => {
  const headers = { 'X-One': { required: false }, 'X-Two': { required: false } }
  const decode = decoderOf({ method: 'GET', path: '/{id}', summary: 'Test', headers, replies: {} } as unknown as Route)
  const arrival = { actor: operator, door: 'inject', id: 'req_1', found: { params: { id: 'a' } } }
  const call = new Call(new Set(), operator)
  const request = { query: {}, headers: { 'x-one': ['1', '2'], 'x-three': '3' }, arrival }
  const { signal, ...others } = { ...decode(request as never, call) } as unknown as { readonly signal: AbortSignal }
  const expected = { params: { id: 'a' }, query: undefined, body: undefined, headers: { 'x-one': '1' } }
  assert.equal(Object.fromEntries(Object.entries(others)), {
    ...expected,
    actor: operator,
    door: 'inject',
    id: 'req_1',
  })
  const reason: Fault = KernelErrors.unavailable()
  call.abort(reason)
  assert.is(signal.reason, reason)
})

test.run()
