import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import type { RouteCommand } from '../../cli/commands/command-data.js'
import { describeRoutes } from '../../cli/commands/describe-commands.js'
import { findCommand } from '../../cli/commands/find-command.js'
import { noContent, routeOf } from '../../kernel/contract/route.js'
import { cli, type RouteCli } from '../../kernel/kit/annotations/index.js'
import { thingsData } from './fake-daemon.js'

const route = routeOf<unknown>()
const base = { method: 'POST', summary: 's', replies: { 204: null }, handle: noContent } as const
const describe = (entry: ReturnType<typeof route>) => describeRoutes([entry])[0] as RouteCommand
const optionsOf = ({ options }: RouteCommand) => options.map(({ option, in: at, type }) => `${at} ${option} ${type}`)

test('the data of a command survives a JSON round trip', () => {
  assert.equal(JSON.parse(JSON.stringify(thingsData)), thingsData)
  assert.ok(thingsData.routes.length > 0)
})

test('an option has the name that its route gives; an option for an unknown member is an error of the route', () => {
  const body = v.strictObject({ thing_name: v.string(), size: v.optional(v.string()) })
  const named = (options: Record<string, string>) =>
    describe(route({ ...base, path: '/api/x', body, with: [cli('x', { options })] }))
  assert.equal(optionsOf(named({ thing_name: 'thing' })), ['body thing text', 'body size text'])
  assert.throws(() => named({ other: 'thing' }), /POST \/api\/x \(svc x\): no query or body member is named other/)
})

test('each schema of a member maps to a kind of option', () => {
  const body = v.strictObject({
    text: v.string(),
    maybe_null: v.nullish(v.string()),
    choice: v.nullable(v.picklist(['a', 'b'])),
    fixed: v.optional(v.literal('only')),
    count: v.pipe(v.number(), v.integer()),
    ratio: v.number(),
    on: v.optional(v.boolean(), true),
    names: v.array(v.string()),
    things: v.array(v.object({ a: v.string() })),
    map: v.record(v.string(), v.string()),
    either: v.union([v.string(), v.number()]),
    any: v.unknown(),
    json: v.string(),
    output: v.string(),
    sha256: v.string(),
  })
  const command = describe(
    route({ ...base, path: '/api/x', body, query: v.object({ text: v.string() }), with: [cli('x')] }),
  )
  assert.equal(optionsOf(command), [
    'query text text',
    'body maybe-null text',
    'body choice text',
    'body fixed text',
    'body count integer',
    'body ratio number',
    'body on boolean',
    'body names list',
    'body things json',
    'body map json',
    'body either json',
    'body any json',
    'body body-json text',
    'body body-output text',
    'body sha text',
  ])
  const byName = new Map(command.options.map(option => [option.name, option]))
  assert.equal(byName.get('choice')?.values, ['a', 'b'])
  assert.equal(byName.get('fixed')?.values, ['only'])
  assert.is(byName.get('count')?.required, true)
  assert.is(byName.get('maybe_null')?.required, false)
})

test('a body that is not an object is passed whole', () => {
  const body = v.union([v.object({ a: v.string() }), v.object({ b: v.string() })])
  const command = describe(route({ ...base, path: '/api/x', body, with: [cli('x')] }))
  assert.equal(command.options, [])
  assert.is(command.body, 'required')
})

test('inconsistent command data is refused with the name of the route', () => {
  const wrong =
    ({ path, ...more }: RouteCli) =>
    () =>
      describe(route({ ...base, path: '/api/x/{id}/{part}', with: [cli(path, more)] }))
  assert.throws(wrong({ path: 'x', args: [{ name: 'id' }] }), /POST \/api\/x.*svc x.*nothing fills.*part/)
  assert.throws(wrong({ path: 'x', args: [{ name: 'id' }, { name: 'nope' }] }), /no parameter.*nope/)
  assert.throws(wrong({ path: 'x', workspace: 'nope' }), /no parameter.*nope/)
  assert.not.throws(wrong({ path: 'x', args: [{ name: 'id' }], find: { part: { path: '/api/y/{id}', pick: 'part' } } }))
})

test('the longest path wins, a nested group runs its list, and a misspelt word gets a suggestion', () => {
  const entries = thingsData.routes
  const find = (text: string) => {
    const found = findCommand(text.split(' ').filter(Boolean), entries)
    if (found.is === 'command') return `${found.entry.path} | ${found.rest.join(' ')}`
    return found.is === 'group' ? `group ${found.name}` : `unknown ${found.text} ~ ${found.alike.join(',')}`
  }
  assert.is(find('thing list --limit 3'), 'thing list | --limit 3')
  assert.is(find('thing text t -- x'), 'thing text | t -- x')
  assert.is(find('thing parts'), 'thing parts list | ')
  assert.is(find('thing parts --json'), 'thing parts list | --json')
  assert.is(find('thing parts lst'), 'unknown thing parts lst ~ thing parts list')
  assert.is(find('thing'), 'group thing')
  assert.is(find(''), 'group ')
  assert.is(find('thin list'), 'unknown thin ~ thing list')
  assert.is(find('thing frobnicate'), 'unknown thing frobnicate ~ ')
})

test.run()
