import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import type { RouteCommand } from '../../../cli/commands/command-data.js'
import { describeRoutes } from '../../../cli/commands/describe-commands.js'
import {
  annotationKinds,
  annotationOf,
  annotationsOf,
  type CliView,
  canRunCode,
  cli,
  columnsOf,
  Description,
  describe,
  RouteTool,
  runsCode,
  show,
  Thrown,
  throws,
  tool,
  withTable,
  wrongAnnotation,
} from '../../../kernel/kit/annotations/index.js'
import { defineErrors, definePlugin, noContent, routeOf } from '../../../kernel/plugin.js'
import { inTree, openapi } from '../../../plugins/index.js'
import { boot } from '../../harness/kernel.js'

const Errors = defineErrors({
  thing_missing: { status: 404, message: 'no such thing' },
  thing_lost: { status: 502, message: 'the thing is lost' },
})
const base = {
  method: 'POST',
  path: '/api/things',
  summary: 'Do it',
  replies: { 204: null },
  handle: noContent,
} as const

test('each reader finds its annotations, and annotations of a route override those of its file', () => {
  const route = routeOf<unknown>(describe('Things'), runsCode(false))
  const plain = route(base)
  const own = route({
    ...base,
    with: [describe('Others'), tool('thing_do', ['things']), tool('thing_done', ['things']), throws(Errors.thing_lost)],
  })
  assert.equal(annotationOf(plain, Description), { area: 'Things' })
  assert.is(canRunCode(plain), false)
  assert.is(canRunCode(routeOf()(base)), true)
  assert.equal(annotationsOf(own, Description), [{ area: 'Others' }])
  assert.equal(
    annotationsOf(own, RouteTool).map(({ name }) => name),
    ['thing_do', 'thing_done'],
  )
  assert.equal(annotationsOf(own, Thrown), [[{ code: 'thing_lost', status: 502 }]])
  assert.is(canRunCode(own), false)
})

test('data refused by its schema and a duplicate of a single annotation are named', () => {
  const wrong = (...annotations: Parameters<typeof wrongAnnotation>[0]) => wrongAnnotation(annotations, annotationKinds)
  assert.is(
    wrong(describe('A'), cli('a b', { done: 'x' }), tool('t', ['s']), tool('u', ['s']), runsCode(true)),
    undefined,
  )
  assert.match(wrong(describe('A'), describe('B')) ?? '', 'has the annotation describe@1 2 times')
  assert.match(wrong(cli('Not A Path')) ?? '', /cli@1 that is not valid: path: lower case words/)
  assert.match(wrong(cli('a', { views: {} } as never)) ?? '', /cli@1 that is not valid: views: unknown member/)
  assert.match(wrong({ of: 'tool@1', data: { name: 'T', toolsets: [] } }) ?? '', /tool@1 that is not valid: name/)
  assert.match(wrong({ of: 'throws@1', data: 'no' }) ?? '', 'throws@1 that is not valid')
  assert.match(wrong('cli' as never) ?? '', 'is not an annotation')
  assert.match(wrongAnnotation(cli('a') as never, annotationKinds) ?? '', 'is not an annotation')
  assert.is(wrong({ of: 'acme.other@1', data: Symbol('any') }), undefined, 'a kind of another reader is its own')
})

test('every route of the program has valid annotations and a section of the document', () => {
  let seen = 0
  for (const { name, surface } of inTree)
    for (const route of surface.routes ?? []) {
      seen++
      assert.is(wrongAnnotation(route.with ?? [], annotationKinds), undefined, `${name}: ${route.method} ${route.path}`)
      assert.ok(annotationOf(route, Description)?.area, `${name}: ${route.method} ${route.path} has no section`)
    }
  assert.ok(seen > 300, `${seen} routes`)
})

test('a plugin with a wrong annotation does not load, and the fault names annotation and route', async () => {
  const wrong = definePlugin({ name: 'wrong', version: '1.0.0' }).surface({
    routes: [routeOf()({ ...base, with: [cli('things do'), cli('things undo')] })],
  })
  const right = definePlugin({ name: 'right', version: '1.0.0' }).surface({
    routes: [routeOf()({ ...base, path: '/api/others', with: [cli('others do'), throws(Errors.thing_lost)] })],
    errors: [Errors],
  })
  const svc = await boot({ plugins: [openapi] })
  try {
    assert.is((await svc.kernel.host.load(right)).status, 'active')
    const state = await svc.kernel.host.load(wrong)
    assert.is(state.status, 'failed')
    assert.match(JSON.stringify(state), /POST \/api\/things has the annotation cli@1 2 times/)
    const { body } = await svc.request('GET', '/api/openapi.json')
    const operation = body.paths['/api/others'].post
    assert.equal(operation['x-error-codes'], ['thing_lost'])
    assert.ok(operation.responses['502'], 'the status of a code is one of the route')
  } finally {
    await svc.close()
  }
})

test('two plugins with one command conflict by the claim of the annotation', async () => {
  const of = (name: string, path: '/api/a' | '/api/b') =>
    definePlugin({ name, version: '1.0.0' }).surface({
      routes: [routeOf()({ ...base, path, with: [cli('things do')] })],
    })
  const svc = await boot({ plugins: [of('first', '/api/a'), of('second', '/api/b')] })
  try {
    assert.match(JSON.stringify(svc.kernel.host.plugins()), /the command things do is already registered by \w+/)
  } finally {
    await svc.close()
  }
})

const Thing = v.object({
  name: v.string(),
  next_run: v.nullish(v.string()),
  made_at: v.string(),
  size: v.number(),
  tags: v.optional(v.array(v.string())),
  owner: v.optional(v.object({ id: v.string() })),
})
const Things = v.object({ things: v.array(Thing), count: v.number() })
const OneThing = v.object({ thing: Thing })

test('a view lists members with their headers and formats', () => {
  const list = show(Things, 'things', ['name', 'next_run~ago', 'size~bytes', 'tags~list', 'owner.id', 'made_at~time'], {
    empty: 'none',
  })
  assert.equal(list, {
    rows: 'things',
    columns: [
      { header: 'Name', path: 'name' },
      { header: 'Next run', path: 'next_run', as: 'ago' },
      { header: 'Size', path: 'size', as: 'bytes' },
      { header: 'Tags', path: 'tags', as: 'list' },
      { header: 'ID', path: 'owner.id' },
      { header: 'Made', path: 'made_at', as: 'time' },
    ],
    empty: 'none',
  })
  const one = show(OneThing, 'thing', [{ of: 'name', header: 'WHY', words: { a: 'b' }, below: true }])
  assert.equal(one, { item: 'thing', fields: [{ header: 'WHY', path: 'name', words: { a: 'b' }, below: true }] })
  const columns = columnsOf<v.InferOutput<typeof Thing>>()(['size~duration'])
  assert.equal(withTable(one, 'tags', columns), { ...one, table: { path: 'tags', columns } })
  // @ts-expect-error no such member
  assert.throws(() => show(Things, 'things', ['nmae']), 'there is no member nmae')
  // @ts-expect-error no such member of a member
  assert.throws(() => show(Things, 'things', ['owner.nmae']), 'there is no member owner.nmae')
  // @ts-expect-error a text has no bytes
  show(Things, 'things', ['name~bytes'])
  // @ts-expect-error a number is no list
  columnsOf<v.InferOutput<typeof Thing>>()(['size~list'])
  // @ts-expect-error no such member of the reply
  assert.throws(() => show(Things, 'thing', ['name']), 'the reply has no member thing')
})

test('the view becomes the view of the command', () => {
  const view: CliView = show(Things, 'things', ['name'])
  const route = routeOf()({
    ...base,
    method: 'GET',
    replies: { 200: Things },
    with: [cli('things list', { view })],
    handle: () => ({ status: 200, body: { things: [], count: 0 } }) as const,
  })
  assert.equal((describeRoutes([route])[0] as RouteCommand).view, view)
})

test.run()
