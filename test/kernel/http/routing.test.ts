import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Routing } from '../../../kernel/http/routing.js'
import type { PipelineContext } from '../../../kernel/http/serve-route.js'
import type { Method } from '../../../kernel/plugin.js'

// Only requests read more of it.
const context = { hooks: {} } as PipelineContext

/** Routes as `GET /a/{b}`, each of a plugin with that name. */
const routing = (...texts: string[]) =>
  new Routing(
    texts.map(owner => {
      const [method, path] = owner.split(' ') as [Method, string]
      return {
        owner,
        self: undefined,
        route: { method, path, summary: '', replies: {}, handle: () => undefined } as never,
      }
    }),
    context,
  )
const found = (of: Routing, text: string) => {
  const [method = '', url = ''] = text.split(' ')
  const { route, params } = of.find(method, url)
  return route && `${route.bound.owner} ${JSON.stringify(params)}`
}

test('a request finds the route that one router with all routes would find', () => {
  const all = routing(
    'GET /',
    'GET /metrics',
    'GET /api/things',
    'GET /api/things/{id}',
    'GET /api/things/special',
    'PUT /api/things/{id}',
    'GET /api/{kind}/{id}/parts',
    'GET /{page}',
    'GET /files/*',
    'GET /api/things/{id}.{form}/raw',
  )
  for (const [asked, says] of [
    ['GET /', 'GET / {}'],
    ['GET /?a=1', 'GET / {}'],
    ['GET /metrics', 'GET /metrics {}'],
    ['GET /metrics/', 'GET /metrics {}'],
    ['GET /metrics//', undefined],
    ['GET /api/things?limit=/x/y', 'GET /api/things {}'],
    ['GET /api/things/', 'GET /api/things {}'],
    ['GET /api/things#x', 'GET /api/things {}'],
    ['GET /api/%74hings/7', 'GET /api/things/{id} {"id":"7"}'],
    ['GET /api/things/a%2Fb', 'GET /api/things/{id} {"id":"a/b"}'],
    ['GET /api/things/special', 'GET /api/things/special {}'],
    ['PUT /api/things/special', 'PUT /api/things/{id} {"id":"special"}'],
    ['GET /api/things/7/parts', 'GET /api/{kind}/{id}/parts {"kind":"things","id":"7"}'],
    ['GET /api/others/7/parts', 'GET /api/{kind}/{id}/parts {"kind":"others","id":"7"}'],
    ['GET /api/things/a.json/raw', 'GET /api/things/{id}.{form}/raw {"id":"a","form":"json"}'],
    ['GET /about', 'GET /{page} {"page":"about"}'],
    ['GET /files/a/b', 'GET /files/* {"*":"a/b"}'],
    ['GET /api/others', undefined],
    ['GET /api/thing', undefined],
    ['DELETE /api/things/7', undefined],
    ['HEAD /api/things', undefined],
    ['PROPFIND /api/things', undefined],
    ['GET /api/%zz/7', undefined],
    ['GET /api/things/%zz', undefined],
    ['OPTIONS *', undefined],
    [`GET /api/things/${'x'.repeat(5000)}`, `GET /api/things/{id} {"id":"${'x'.repeat(5000)}"}`],
    [`GET /api/things/${'x'.repeat(5001)}`, undefined],
  ] as const)
    assert.is(found(all, asked), says, asked.slice(0, 60))
})

test('routes that cannot be served are refused when they are published, with their plugin', () => {
  for (const texts of [
    ['GET /api/a', 'GET /api/a'],
    ['GET /api/a/{id}', 'GET /api/a/{name}'],
    ['GET /api/a', 'GET /api/a/'],
    ['GET /api/fine', 'GET /api/a**b'],
    ['GET /api/fine', 'GET api/a'],
    ['GET /api/fine', 'FETCH /api/a'],
    ['GET /api/fine', 'GET /{a}/{b', 'GET /{a}/:(**'],
  ]) {
    const says = (() => {
      try {
        routing(...texts)
        return 'served'
      } catch (error) {
        return (error as { details: { plugin: string } }).details.plugin
      }
    })()
    assert.is(says, texts.at(-1), texts.join(', '))
  }
})

test.run()
