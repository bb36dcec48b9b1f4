import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { operationId } from '../../../kernel/contract/route.js'
import { annotationOf, Description, describe } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, ok, type Plugin, type Route, routeOf } from '../../../kernel/plugin.js'
import { inTree } from '../../../plugins/index.js'
import { buildDocument } from '../../../plugins/platform/openapi/document.js'
import { boot } from '../../harness/kernel.js'
import { things } from '../fixtures/things.js'

interface Document {
  readonly paths: Record<string, Record<string, Operation>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { in: string; name: string; required?: boolean; schema: object }[]
  readonly responses: Record<string, { content?: Record<string, { schema: object }> }>
}

const routes = inTree.flatMap(plugin => plugin.surface.routes ?? []) as unknown as Route[]
const documentOf = async (all: readonly Route[]) =>
  JSON.parse(JSON.stringify(await buildDocument(all, '1'))) as Document
const operations = ({ paths }: Document) => Object.values(paths).flatMap(methods => Object.values(methods))

const more = (path: string, body: v.GenericSchema = v.unknown()): Route =>
  routeOf<unknown>()({
    method: 'GET',
    path,
    with: [describe('Test')],
    summary: 'More',
    replies: { 200: body },
    handle: () => ok({}),
  }) as Route

const plugin = (name: string, all: readonly Route[]) =>
  definePlugin({ name, version: '1.0.0', service: async () => class {} }).surface({ routes: all }) as Plugin

test('an operation id is made only of method and path, and is an identifier in any language', () => {
  const id = (method: 'GET' | 'PUT', path: string) => operationId({ method, path })
  assert.is(id('GET', '/api/things'), 'getThings')
  assert.is(id('PUT', '/api/things/{thing_id}/big-parts/{id}'), 'putThingsByThingIdBigPartsById')
  assert.is(id('GET', '/api/openapi.json'), 'getOpenapiJson')
  for (const { method, path } of routes) assert.match(operationId({ method, path }), /^[a-z][A-Za-z0-9]+$/)
})

test('operation ids are unique, and a new route does not change the others', async () => {
  const before = await documentOf(routes)
  const ids = operations(before).map(operation => operation.operationId)
  assert.is(new Set(ids).size, routes.length)
  const after = await documentOf([more('/api/aaa/{id}'), ...[...routes].reverse(), more('/api/zzz')])
  for (const [path, methods] of Object.entries(before.paths)) assert.equal(after.paths[path], methods, path)
})

test('two routes with one operation id fail the later plugin', async () => {
  const svc = await boot({ plugins: [plugin('aa', [more('/api/a/{b}')]), plugin('bb', [more('/api/a/by/b')])] })
  const state = svc.kernel.host.plugins().find(({ name }) => name === 'bb')?.state
  assert.equal(state, { status: 'failed', error: 'the operation getAByB is already registered by aa' })
  assert.is((await svc.request('GET', '/api/a/1')).status, 200)
  await svc.close()
})

test('every parameter has a schema, every path parameter is declared, every error has the error body', async () => {
  const document = await documentOf(routes)
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { parameters = [], responses }] of Object.entries(methods)) {
      const label = `${method} ${path}`
      const names = [...path.matchAll(/\{([^}]+)\}/g)].map(match => match[1])
      assert.equal(
        parameters.filter(parameter => parameter.in === 'path').map(({ name, required }) => [name, required]),
        names.map(name => [name, true]),
        label,
      )
      for (const { name, schema } of parameters) assert.ok(Object.keys(schema).length > 0, `${label} ${name}`)
      const route = routes.find(r => r.path === path && r.method.toLowerCase() === method)
      for (const status of [
        400,
        401,
        403,
        404,
        409,
        413,
        415,
        421,
        422,
        429,
        500,
        503,
        507,
        ...(route ? (annotationOf(route, Description)?.errors ?? []) : []),
      ]) {
        const schema = responses[status]?.content?.['application/json']?.schema
        if (status in (route?.replies ?? {})) continue
        if (route?.faults) assert.ok(schema && ('properties' in schema || '$ref' in schema), label)
        else assert.equal(schema, { $ref: '#/components/schemas/Error' }, label)
      }
      for (const status of Object.keys(route?.replies ?? {})) assert.ok(responses[status], `${label} ${status}`)
    }
  }
})

test('a drop-in with a schema that no document can describe fails by name with its route', async () => {
  const odd = more('/api/ext/odd', v.pipe(v.string(), v.transform(Number)))
  const broken = more('/api/ext/broken', v.instance(Map))
  const svc = await boot({ plugins: [things, plugin('vendor.odd', [more('/api/ext/fine'), broken])] })
  const state = svc.kernel.host.plugins().find(({ name }) => name === 'vendor.odd')?.state
  assert.is(state?.status, 'failed')
  assert.match(JSON.stringify(state), /GET \/api\/ext\/broken has a schema that is not a JSON Schema/)
  assert.is((await svc.request('GET', '/api/ext/fine')).status, 404)
  assert.is((await svc.request('GET', '/api/things/a')).status, 200)
  assert.is((await svc.kernel.host.load(plugin('vendor.even', [odd]))).status, 'failed')
  assert.is((await svc.request('GET', '/api/openapi.json')).status, 200)
  await svc.close()
})

test('a boot refuses such a drop-in too, whatever its place in the plan', async () => {
  const broken = plugin('acme.odd', [more('/api/ext/broken', v.instance(Map))])
  const svc = await boot({ plugins: [things, broken] })
  const state = svc.kernel.host.plugins().find(({ name }) => name === 'acme.odd')?.state
  assert.match(JSON.stringify(state), /GET \/api\/ext\/broken has a schema that is not a JSON Schema/)
  assert.is((await svc.request('GET', '/api/openapi.json')).status, 200)
  await svc.close()
})

test('trimmed text and text checked by code are described by the plain schema', async () => {
  const text = v.pipe(
    v.string(),
    v.trim(),
    v.minLength(1),
    v.check(value => value !== 'no'),
  )
  const svc = await boot({ plugins: [things, plugin('vendor.trims', [more('/api/ext/trims', text)])] })
  const { body } = await svc.request('GET', '/api/openapi.json')
  const { schema } =
    (body as Document).paths['/api/ext/trims']?.get?.responses[200]?.content?.['application/json'] ?? {}
  assert.equal(schema, { type: 'string', minLength: 1 })
  await svc.close()
})

interface Branch {
  readonly leaf?: string | undefined
  readonly under?: readonly Branch[] | undefined
}

test('a schema with a title is a component, also a recursive one', async () => {
  const Branch: v.GenericSchema<Branch> = v.pipe(
    v.object({ leaf: v.optional(v.string()), under: v.optional(v.array(v.lazy(() => Branch))) }),
    v.title('Branch'),
  )
  const Tree = v.object({ title: v.string(), first: Branch, second: Branch })
  const document = await documentOf([more('/api/trees', Tree), more('/api/branches', v.array(Branch))])
  const { components } = document as unknown as { components: { schemas: Record<string, { properties: object }> } }
  const reference = { $ref: '#/components/schemas/Branch' }
  assert.equal(components.schemas.Branch?.properties, {
    leaf: { type: 'string' },
    under: { type: 'array', items: reference },
  })
  const reply = (path: string) => document.paths[path]?.get?.responses['200']?.content?.['application/json']?.schema
  assert.equal((reply('/api/trees') as { properties: object }).properties, {
    title: { type: 'string' },
    first: reference,
    second: reference,
  })
  assert.equal(reply('/api/branches'), { type: 'array', items: reference })
  assert.not.ok(JSON.stringify(document).includes('$defs'))
})

test.run()
