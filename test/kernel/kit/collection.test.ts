import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import type { RouteCommand } from '../../../cli/commands/command-data.js'
import { describeRoutes } from '../../../cli/commands/describe-commands.js'
import { annotationOf, annotationsOf, Description, describe, Thrown } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { defineErrors, definePlugin, type Route } from '../../../kernel/plugin.js'
import { openapi } from '../../../plugins/index.js'
import { boot } from '../../harness/kernel.js'

const Errors = defineErrors({
  apple_not_found: { status: 404, message: 'no such apple' },
  apple_exists: { status: 409, message: 'this apple is there already' },
  apple_conflict: { status: 409, message: 'the apple is another by now' },
})
const Apple = v.object({ id: v.string(), color: v.string(), version: v.number() })
const One = v.object({ apple: Apple })
const Many = v.object({ apples: v.array(Apple) })
type Apple = v.InferOutput<typeof Apple>

class Orchard {
  readonly apples = new Map<string, Apple>()

  get(id: string): Apple {
    const apple = this.apples.get(id)
    if (!apple) throw Errors.apple_not_found()
    return apple
  }

  put(id: string, color: string, seen?: unknown): Apple {
    const version = this.apples.get(id)?.version ?? 0
    if (seen !== undefined && seen !== version) throw Errors.apple_conflict()
    const apple = { id, color, version: version + 1 }
    this.apples.set(id, apple)
    return apple
  }
}

const apple = collectionOf<Orchard>(describe('Apples'))({
  path: '/api/apples',
  key: 'id',
  noun: 'apple',
  one: [One, 'apple'],
  many: [Many, 'apples'],
  show: ['id', 'color'],
  fields: ['id', 'color', 'version'],
  argument: { summary: 'id of an apple' },
  missing: Errors.apple_not_found,
  at: {
    member: 'expected_version',
    schema: v.optional(v.pipe(v.number(), v.integer())),
    conflict: Errors.apple_conflict,
  },
})

const routes = [
  apple.list({
    query: v.strictObject({ color: v.optional(v.string()) }),
    empty: 'no apples',
    handle: (self, { query }) => ({
      apples: [...self.apples.values()].filter(({ color }) => query.color === undefined || color === query.color),
    }),
  }),
  apple.get({ handle: (self, { params }) => ({ apple: self.get(params.id) }) }),
  apple.create({
    body: v.strictObject({ id: v.string(), color: v.string() }),
    throws: [Errors.apple_exists],
    handle: (self, { body: { id, color } }) => {
      if (self.apples.has(id)) throw Errors.apple_exists()
      return { apple: self.put(id, color) }
    },
  }),
  apple.update({
    body: v.strictObject({ color: v.string() }),
    handle: (self, { params, body }, seen) => {
      assert.equal(Object.keys(body), ['color'], 'what was seen is no part of the body')
      return { apple: self.put(self.get(params.id).id, body.color, seen) }
    },
  }),
  apple.delete({
    handle: (self, { params }, seen) => {
      if (seen !== undefined && seen !== self.get(params.id).version) throw Errors.apple_conflict()
      if (!self.apples.delete(params.id)) throw Errors.apple_not_found()
    },
  }),
  apple.action('wash', { handle: (self, { params }) => ({ apple: self.get(params.id) }) }),
]

const orchard = definePlugin({ name: 'orchard', version: '1.0.0', service: async () => Orchard }).surface({
  errors: [Errors],
  routes,
})

test('the routes of a noun have their statuses, versions and errors', async () => {
  const svc = await boot({ plugins: [openapi, orchard] })
  const ask = async (method: string, url: string, body?: unknown) => {
    const reply = await svc.request(method, url, body)
    return [reply.status, reply.body?.code ?? reply.body]
  }
  try {
    const red = { id: 'a', color: 'red', version: 1 }
    assert.equal(await ask('POST', '/api/apples', { id: 'a', color: 'red' }), [201, { apple: red }])
    assert.equal(await ask('POST', '/api/apples', { id: 'a', color: 'red' }), [409, 'apple_exists'])
    assert.equal(await ask('GET', '/api/apples/a'), [200, { apple: red }])
    assert.equal(await ask('GET', '/api/apples/b'), [404, 'apple_not_found'])
    assert.equal(await ask('PATCH', '/api/apples/a', { color: 'green', expected_version: 7 }), [409, 'apple_conflict'])
    const green = { id: 'a', color: 'green', version: 2 }
    assert.equal(await ask('PATCH', '/api/apples/a', { color: 'green', expected_version: 1 }), [200, { apple: green }])
    assert.equal(await ask('PATCH', '/api/apples/a', { colour: 'green' }), [400, 'invalid_request'])
    assert.equal(await ask('GET', '/api/apples?color=red'), [200, { apples: [] }])
    assert.equal(await ask('POST', '/api/apples/a/wash'), [200, { apple: green }])
    assert.equal(await ask('DELETE', '/api/apples/a', { expected_version: 1 }), [409, 'apple_conflict'])
    assert.equal(await ask('DELETE', '/api/apples/a', { expected_version: 2 }), [204, undefined])
    assert.equal(await ask('DELETE', '/api/apples/a'), [404, 'apple_not_found'])
    const { paths } = (await svc.request('GET', '/api/openapi.json')).body
    assert.equal(paths['/api/apples/{id}'].patch['x-error-codes'], ['apple_conflict', 'apple_not_found'])
    assert.equal(paths['/api/apples'].get['x-error-codes'], undefined)
  } finally {
    await svc.close()
  }
})

test('the commands of a noun have standard verbs, arguments, views and summaries', () => {
  const commands = describeRoutes(routes as readonly Route[]) as readonly RouteCommand[]
  const inWords = commands.map(({ path, args, options, summary }) =>
    [
      path,
      ...args.map(({ option, summary }) => `<${option}: ${summary}>`),
      ...options.map(({ option }) => `--${option}`),
      summary,
    ].join(' '),
  )
  assert.equal(inWords, [
    'apple list --color List apples',
    'apple show <id: id of an apple> Show an apple',
    'apple create --id --color Create an apple',
    'apple update <id: id of an apple> --color --expected-version Change an apple',
    'apple delete <id: id of an apple> --expected-version Delete an apple',
    'apple wash <id: id of an apple> Wash an apple',
  ])
  const columns = [
    { header: 'ID', path: 'id' },
    { header: 'Color', path: 'color' },
  ]
  const [list, show, , , gone] = commands
  assert.equal(list?.view, { rows: 'apples', columns, empty: 'no apples' })
  assert.equal(show?.view, { item: 'apple', fields: [...columns, { header: 'Version', path: 'version' }] })
  assert.is(gone?.done, 'deleted {id}')
  for (const route of routes) assert.equal(annotationOf(route, Description), { area: 'Apples' })
  assert.equal(annotationsOf(routes[0] as never, Thrown), [])
})

test.run()
