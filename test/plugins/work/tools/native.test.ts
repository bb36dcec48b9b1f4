// timeout: 120s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { annotationsOf, canRunCode, RouteTool } from '../../../../kernel/kit/annotations/index.js'
import type { Route } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { NATIVE_TOOLSETS } from '../../../../plugins/work/tools/native-toolsets.js'
import { boot, type TestKernel } from '../../../harness/kernel.js'
import type { Wire } from './scene.js'

const routes = new Map<string, Route>(
  inTree.flatMap(({ surface }) =>
    (surface.routes ?? []).map(route => [`${route.method} ${route.path}`, route as Route]),
  ),
)
const contributed = inTree.flatMap(({ surface }) =>
  (surface.routes ?? []).flatMap(route =>
    annotationsOf(route, RouteTool).map(tool => ({ ...tool, route: `${route.method} ${route.path}` })),
  ),
)

const test = suite<{ svc: TestKernel; tools: readonly Wire[] }>('native tools')
test.before(async context => {
  context.svc = await boot({ plugins: inTree })
  context.tools = (await context.svc.request('GET', '/api/tools')).body.tools
})
test.after(({ svc }) => svc.close())

test('each native tool maps to a route and has its name', ({ tools }) => {
  assert.ok(contributed.length > 100, `${contributed.length} tools`)
  assert.is(new Set(contributed.map(({ name }) => name)).size, contributed.length, 'no name twice')
  for (const { name, route } of contributed) {
    assert.ok(routes.has(route), `${name}: no route ${route}`)
    const tool = tools.find(({ descriptor }) => descriptor.tool_id === `service__${name}`)
    assert.ok(tool, `service__${name} is not listed`)
    assert.equal(tool.availability.reason_codes ?? [], [], `${name}: ${tool.availability.detail}`)
  }
})

test('an id that would address another route is invalid', async ({ svc }) => {
  const tool = 'service__automation_jobs_history'
  for (const id of ['.', '..', '']) {
    const { status, body } = await svc.request('POST', `/api/tools/${tool}/invoke`, { input: { id } })
    assert.equal([status, body.error.code, body.error.message], [400, 'tool_invalid_input', 'id: required'], id)
  }
  // Nor where a plugin makes the path itself: that of the runs of all jobs would be what is left.
  for (const id of ['..', '.', '%2e%2E', '.%2e']) {
    const { status, body } = await svc.request('GET', `/api/automation/jobs/${id}/runs?limit=1`)
    assert.equal([status, body.code], [404, 'route_not_found'], id)
  }
  assert.is((await svc.request('GET', '/api/automation/runs?limit=1')).status, 200)
})

/** Words that begin a description and are no imperative, though they have no s at their end. */
const NO_VERBS = /^(?:A|An|All|One|The|That|What|When|Where|Whether|Which|Stored|How|Why|Whose)$/

test('the description of a tool is in the imperative', ({ tools }) => {
  for (const { descriptor } of tools) {
    const [word = ''] = descriptor.description.split(/[\s,;]/)
    const isVerb = /^[A-Z][a-z]+$/.test(word) && !NO_VERBS.test(word) && !/[^s]s$/.test(word.replace(/^Focus$/, ''))
    assert.ok(isVerb, `${descriptor.tool_id}: ${descriptor.description}`)
  }
})

test('a native tool that can run code or grant rights is destructive', ({ tools }) => {
  const judging = contributed.filter(({ inside }) => inside === 'judged')
  assert.equal(
    judging.map(({ name }) => name),
    ['tool_call'],
    'what it calls is judged by itself',
  )
  const bounded = contributed.filter(({ inside }) => inside === 'bounded')
  assert.equal(
    bounded.map(({ name }) => name).sort(),
    ['channel_reply', 'channel_send', 'network_send'],
    'whom a message wakes has bounds',
  )
  for (const { name, route, inside } of contributed) {
    const { risk } = tools.find(({ descriptor }) => descriptor.tool_id === `service__${name}`).descriptor
    if (canRunCode(routes.get(route) as Route))
      assert.is(risk, { judged: 'read', bounded: 'mutating', none: 'destructive' }[inside ?? 'none'], name)
    if (risk === 'read' && inside !== 'judged') assert.is(canRunCode(routes.get(route) as Route), false, name)
  }
})

/** The least that a schema allows, of things that are not there. */
function least(schema: Wire): Wire {
  if (schema.enum) return schema.enum[0]
  if ('const' in schema) return schema.const
  for (const forms of [schema.anyOf, schema.oneOf]) if (forms) return least(forms[0])
  if (schema.type === 'object')
    return Object.fromEntries((schema.required ?? []).map((name: string) => [name, least(schema.properties[name])]))
  if (schema.type === 'array') return Array.from({ length: schema.minItems ?? 0 }, () => least(schema.items ?? {}))
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  if (schema.type === 'boolean') return false
  return 'zzz-nothing'
}

test('each native tool refuses the requests that its route refuses, with the same code', async ({ svc, tools }) => {
  let compared = 0
  for (const { name, route: key, fixed = {} } of contributed) {
    const route = routes.get(key) as Route
    const { input_schema: schema } = tools.find(
      ({ descriptor }) => descriptor.tool_id === `service__${name}`,
    ).descriptor
    const names = [...route.path.matchAll(/\{([^}]+)\}/g)].map(([, param = '']) => param)
    // Without anything that has to be there the call may do something.
    if (names.length === 0) continue
    const input = { ...least(schema), ...Object.fromEntries(names.map(param => [param, 'zzz-nothing'])) }
    const url = route.path.replace(/\{[^}]+\}/g, 'zzz-nothing')
    const query = new URLSearchParams()
    const rest: Wire = { ...input, ...fixed }
    for (const param of names) delete rest[param]
    if (!route.body) for (const [member, value] of Object.entries(rest)) query.set(member, String(value))
    const direct = await svc.request(
      route.method,
      query.size > 0 ? `${url}?${query}` : url,
      route.body ? (typeof rest.body === 'object' ? rest.body : rest) : undefined,
    )
    const called = await svc.request('POST', `/api/tools/service__${name}/invoke`, { input })
    if (direct.status < 400) {
      assert.is(called.status, 200, `${name}: ${JSON.stringify(called.body)}`)
      continue
    }
    const { error } = called.body
    assert.ok(called.status >= 400, `${name}: ${JSON.stringify(called.body)}`)
    const details = error.details ?? called.body.details
    const code = direct.body.code ?? direct.body.error.details?.code ?? direct.body.error.code ?? direct.body.error
    const told = details.code ?? error.code
    assert.equal(
      [String(direct.status), code],
      [details.status ?? String(called.status), told],
      `${name}: ${JSON.stringify([direct.body, called.body])}`,
    )
    compared++
  }
  assert.ok(compared > 60, `${compared} refusals were compared`)
})

test('every toolset of the program exists, and each native tool is in one', async ({ svc, tools }) => {
  const { toolsets } = (await svc.request('GET', '/api/toolsets')).body
  for (const id of NATIVE_TOOLSETS)
    assert.ok(
      toolsets.some((set: Wire) => set.id === id),
      id,
    )
  assert.is(NATIVE_TOOLSETS.length, 30)
  for (const { descriptor } of tools) assert.ok(descriptor.toolsets.length > 0, descriptor.tool_id)
  const { toolset } = (await svc.request('GET', '/api/toolsets/core')).body
  assert.equal(toolset.status, 'available')
  assert.equal(toolset.expanded_tools, [...new Set<string>(toolset.expanded_tools)].sort())
  assert.ok(toolset.expanded_tools.includes('service__tool_search'), 'of a set in it')
  const empty = toolsets.find(({ id }: Wire) => id === 'memory')
  assert.equal([empty.status, empty.reason_codes], ['unavailable', ['dependency_missing']])
  const none = await svc.request('GET', '/api/toolsets/nothing')
  assert.equal([none.status, none.body.error.reason_codes], [404, ['toolset_unknown']])
})

test('the description of the search and call tools is small', ({ tools }) => {
  const shown = ['tool_search', 'tool_info', 'tool_call'].map(
    name => tools.find(({ descriptor }) => descriptor.tool_id === `service__${name}`).descriptor,
  )
  const bytes = Buffer.byteLength(
    JSON.stringify(shown.map(({ tool_id, description, input_schema }) => [tool_id, description, input_schema])),
  )
  assert.ok(bytes < 4000, `${bytes} bytes`)
})

test.run()
