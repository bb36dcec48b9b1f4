// timeout: 120s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import {
  type OfferedTool,
  type ToolBackend,
  ToolBackends,
  type ToolContent,
  Tools,
} from '../../../../plugins/work/tools/api.js'
import { type Caller, openScene, type Scene, type Wire } from './scene.js'

/** A server whose tools are what a test makes of them. */
const far = { tools: [] as readonly OfferedTool[], content: [] as readonly ToolContent[], called: 0, listed: 0 }
const offer = (
  name: string,
  more: Partial<OfferedTool['descriptor']> = {},
  rest: Partial<OfferedTool> = {},
): OfferedTool => ({
  descriptor: {
    id: `mcp__far__${name}`,
    description: `the tool ${name}`,
    inputSchema: { type: 'object' },
    risk: 'mutating',
    visibility: 'model',
    backend: { kind: 'mcp', mcpServer: 'far', mcpTool: name },
    digest: `digest of ${name}`,
    owner: 'far',
    ...more,
  },
  ...rest,
})
const backend: ToolBackend = {
  kind: 'mcp',
  tools: () => {
    far.listed++
    return far.tools
  },
  call: async () => {
    far.called++
    return { content: far.content }
  },
}
let refuses = ''
const { contribute, tap } = surfaceOf<unknown>()
const server = definePlugin({ name: 'test.far', version: '1.0.0', requires: { tools: Tools } }).surface({
  registries: [contribute(ToolBackends, () => [backend])],
  taps: [
    tap(
      Tools,
      tools => tools.calling,
      () => wish => (wish.toolId === refuses ? { ...wish, deny: 'not today' } : undefined),
    ),
  ],
})

const test = suite<{ scene: Scene; ada: Caller }>('tool policy')
test.before(async context => {
  const cycle = {
    a: { toolsets: ['b'] },
    b: { toolsets: ['a'] },
    mine: { tools: ['mcp__far__*'], toolsets: ['nothing'] },
    core: { tools: ['mcp__far__x'] },
  }
  context.scene = await openScene({ plugins: [server], config: { tools: { toolsets: cycle } } })
  context.ada = await context.scene.agent('ada', { permissions: 'approve-all' })
})
test.before.each(() => {
  Object.assign(far, {
    tools: [offer('x'), offer('y', { risk: 'read' })],
    content: [{ type: 'text', text: 'ok' }],
    called: 0,
  })
  refuses = ''
})
test.after(({ scene }) => scene.close())

const outcome = ({ status, body }: Wire) => [
  status,
  body.error?.code ?? body.status,
  ...(body.error?.reason_codes ?? []),
]

test('external tools are for agents that name them, or by the setting of the operator', async ({ ada, scene }) => {
  assert.equal(outcome(await ada.call('mcp__far__x')), [403, 'tool_denied', 'source_disabled'])
  const named = await scene.agent('named', { permissions: 'approve-all', lines: ['tools: ["mcp__far__*"]'] })
  assert.equal(outcome(await named.call('mcp__far__x')), [200, 'completed'])
  assert.equal(outcome(await named.call('service__tool_info', { id: 'mcp__far__x' })), [
    403,
    'tool_denied',
    'policy_denied',
  ])
  const denied = await scene.agent('denied', {
    permissions: 'approve-all',
    lines: ['toolsets: ["mine"]', 'deny_tools: ["mcp__far__x"]'],
  })
  assert.equal(outcome(await denied.call('mcp__far__x')), [403, 'tool_denied', 'policy_denied'], 'deny wins')
  assert.equal(outcome(await denied.call('mcp__far__y')), [200, 'completed'], 'by its toolset')
  const strict = await scene.agent('strict', { permissions: 'deny-all', lines: ['tools: ["mcp__far__*"]'] })
  assert.equal(outcome(await strict.call('mcp__far__x')), [403, 'tool_denied', 'session_denied'])
  assert.equal(outcome(await strict.call('mcp__far__y')), [202, 'tool_approval_required', 'approval_required'])
  await scene.decide('reject')
  const reads = await scene.agent('reads', { lines: ['tools: ["mcp__far__*"]'] })
  assert.equal(outcome(await reads.call('mcp__far__y')), [200, 'completed'])
  assert.equal(outcome(await reads.call('mcp__far__x')), [202, 'tool_approval_required', 'approval_required'])
  await scene.decide('reject')
})

test('a call reads only the tools of the backend that owns its prefix', async ({ ada, scene }) => {
  const named = await scene.agent('reader', {
    permissions: 'approve-all',
    lines: ['tools: ["mcp__far__*", "service__agent_list"]'],
  })
  const own = () => named.call('service__agent_list')
  assert.equal(outcome(await own()), [200, 'completed'])
  let before = far.listed
  for (let n = 0; n < 5; n++) await own()
  // A session that starts lists the tools once by itself.
  assert.ok(far.listed - before <= 1, `${far.listed - before} lists of another backend for five calls`)
  before = far.listed
  await named.call('mcp__far__x')
  assert.ok(far.listed > before, 'its own backend is read')
  far.tools = [offer('z')]
  assert.equal(outcome(await named.call('mcp__far__z')), [200, 'completed'], 'a new tool is known at once')
  assert.equal(
    outcome(await ada.call('mcp__far__x')),
    [404, 'tool_not_found', 'tool_unknown'],
    'a removed tool is unknown at once',
  )
})

test('tools that run code in the daemon need a user also under approve-all', async ({ ada, scene }) => {
  const reply = await ada.call('service__agent_duplicate', { name: 'ada', new_name: 'copy' })
  const shown = (await scene.operator('GET', '/api/tools/service__agent_delete')).body.tool.descriptor.risk
  assert.is(shown, 'destructive')
  const removal = await ada.call('service__agent_delete', { name: 'ada' })
  assert.equal(
    outcome(removal),
    [202, 'tool_approval_required', 'approval_required'],
    JSON.stringify([reply.body, removal.body]),
  )
  const { approvals } = (await scene.operator('GET', '/api/tool-approvals')).body
  for (const { id } of approvals)
    await scene.operator('POST', `/api/tool-approvals/${id}/decide`, { decision: 'reject' })
  const nested = await ada.call('service__tool_call', { id: 'service__agent_delete', input: { name: 'ada' } })
  assert.equal(
    outcome(nested),
    [202, 'tool_approval_required', 'approval_required'],
    'also by the tool that calls tools',
  )
  await scene.decide('reject')
  assert.equal(outcome(await ada.call('service__session_list')), [200, 'completed'])
})

test('an agent stays in the workspace of its session', async ({ ada }) => {
  for (const [tool, input] of [
    ['service__session_list', { workspace: 'ws_00000000000000ff' }],
    ['service__workspace_info', { id: 'ws_00000000000000ff' }],
    ['service__session_info', { workspace_id: 'ws_00000000000000ff', session_id: ada.id }],
  ] as const)
    assert.equal(outcome(await ada.call(tool, input)), [403, 'tool_denied', 'session_denied'], tool)
  assert.equal(outcome(await ada.call('service__workspace_info')), [200, 'completed'])
  assert.equal(outcome(await ada.call('service__workspace_list')), [403, 'tool_denied', 'visibility_denied'])
})

test('a hook refuses a call, and an unavailable tool gives the reason', async ({ scene }) => {
  refuses = 'mcp__far__y'
  const operator = (tool: string) => scene.operator('POST', `/api/tools/${tool}/invoke`, { input: {} })
  assert.equal(outcome(await operator('mcp__far__y')), [403, 'tool_denied', 'hook_denied'])
  far.tools = [offer('x', {}, { unavailable: ['mcp_unreachable'], why: 'the server is gone' })]
  const away = await operator('mcp__far__x')
  assert.equal(
    [...outcome(away), away.body.error.message],
    [409, 'tool_unavailable', 'mcp_unreachable', 'the server is gone'],
  )
  assert.is((await scene.operator('GET', '/api/tools/mcp__far__x')).body.tool.availability.detail, 'the server is gone')
  far.tools = [offer('x'), offer('x')]
  assert.equal(outcome(await operator('mcp__far__x')), [409, 'tool_conflict', 'conflicted_sanitized_name'])
  far.tools = [offer('x', { id: 'service__evil' }), offer('y', { id: 'mcp__far__' }), offer('z', { id: 'MCP' })]
  assert.equal(outcome(await operator('service__evil')), [409, 'tool_unavailable', 'reserved_namespace'])
  assert.equal(outcome(await operator('mcp__far__')), [409, 'tool_unavailable', 'id_empty_segment'])
  assert.equal(outcome(await operator('MCP')), [409, 'tool_unavailable', 'id_invalid_format'])
  assert.equal(outcome(await operator('mcp__far__none')), [404, 'tool_not_found', 'tool_unknown'])
  const short = await scene.operator('GET', '/api/tools/tool_search')
  assert.match(JSON.stringify(short.body), 'svc tool show service__tool_search')
})

test('a remembered decision does not apply to a changed tool', async ({ scene }) => {
  const agent = await scene.agent('careful', { lines: ['tools: ["mcp__far__*"]'] })
  const url = `/api/tool-approval-grants?workspace_id=${scene.world.workspaceId}`
  await scene.operator('PUT', url, { decision: 'allow', scope: 'tool', tool_id: 'mcp__far__x' })
  assert.equal(outcome(await agent.call('mcp__far__x')), [200, 'completed'])
  far.tools = [offer('x', { digest: 'another' })]
  assert.equal(outcome(await agent.call('mcp__far__x')), [202, 'tool_approval_required', 'approval_required'])
  far.tools = [offer('x', { digest: 'a third' })]
  far.called = 0
  const { id } = await scene.decide('allow')
  const { body } = await agent.ask('GET', `/api/tools/approvals/${id}`)
  assert.is(far.called, 0, JSON.stringify(body))
})

test('hostile schemas are refused whole and cost a call little', async ({ scene }) => {
  const deep: Wire = {}
  let at = deep
  for (let n = 0; n < 5000; n++) at = at.properties = { type: 'object', x: {} }
  const circle = {
    type: 'object',
    $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } },
    properties: { x: { $ref: '#/$defs/a' } },
  }
  const wide = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`p${n}`, {}])),
  }
  const numbers = Array.from({ length: 9000 }, (_, n) => n)
  const choice = { type: 'object', properties: { x: { type: 'array', items: { enum: numbers } } } }
  const nowhere = { type: 'object', properties: { x: { $ref: '#/%' } } }
  const bombs = { type: 'object', patternProperties: { '^(a+)+$': {}, '^(a|aa)+$': {}, '^(a|a?)+$': {} } }
  const bomb = { type: 'object', properties: { x: { type: 'string', pattern: '^(a+)+$' } } }
  far.tools = [
    offer('deep', { inputSchema: deep }),
    offer('wide', { inputSchema: wide }),
    offer('far_away', { inputSchema: { type: 'object', properties: { x: { $ref: 'https://example.com/x' } } } }),
    offer('no_object', { inputSchema: { type: 'string' } }),
    offer('circle', { inputSchema: circle }),
    offer('bomb', { inputSchema: bomb }),
    offer('bombs', { inputSchema: bombs }),
    offer('choice', { inputSchema: choice }),
    offer('nowhere', { inputSchema: nowhere }),
  ]
  const call = (name: string, input = {}) => scene.operator('POST', `/api/tools/mcp__far__${name}/invoke`, { input })
  for (const name of ['deep', 'wide', 'far_away', 'no_object'])
    assert.equal(outcome(await call(name)), [409, 'tool_unavailable', 'schema_invalid'], name)
  assert.equal(outcome(await call('circle', { x: 1 })), [400, 'tool_invalid_input', 'schema_invalid'])
  assert.equal(outcome(await call('bomb', { x: `${'a'.repeat(5000)}!` })), [
    400,
    'tool_invalid_input',
    'schema_invalid',
  ])
  assert.equal(outcome(await call('bomb', { x: 'aaa' })), [200, 'completed'])
  const refused = [400, 'tool_invalid_input', 'schema_invalid']
  const names = Object.fromEntries(numbers.slice(0, 100).map(n => [`${'a'.repeat(60 + (n % 7))}!${n}`, n]))
  assert.equal(outcome(await call('bombs', names)), refused)
  assert.equal(outcome(await call('choice', { x: numbers.map(() => -1) })), refused)
  assert.equal(outcome(await call('choice', { x: [8999, 0] })), [200, 'completed'])
  assert.equal(outcome(await call('nowhere', { x: 1 })), refused)
})

test('a result of 10 MB gives its beginning and an artifact; 17 MB are refused', async ({ scene }) => {
  const call = () =>
    scene.operator('POST', '/api/tools/mcp__far__x/invoke', { input: {}, workspace_id: scene.world.workspaceId })
  far.content = [{ type: 'text', text: 'y'.repeat(10 * 1024 * 1024) }]
  const large = await call()
  assert.equal(
    [large.status, large.body.truncated, large.body.result.artifacts[0].bytes],
    [200, true, 10 * 1024 * 1024],
  )
  far.content = [{ type: 'text', text: 'y'.repeat(17 * 1024 * 1024) }]
  assert.equal(outcome(await call()), [502, 'tool_result_too_large', 'result_budget_exceeded'])
})

test('toolsets are expanded; a circular one is empty with a warning', async ({ scene }) => {
  const show = async (id: string) => (await scene.operator('GET', `/api/toolsets/${id}`)).body.toolset
  for (const id of ['a', 'b']) {
    const { status, expanded_tools, reason_codes } = await show(id)
    assert.equal([status, expanded_tools, reason_codes], ['unavailable', [], ['toolset_cycle']])
  }
  const mine = await show('mine')
  assert.equal(mine.expanded_tools, ['mcp__far__x', 'mcp__far__y'])
  assert.equal([mine.status, mine.reason_codes], ['partially_available', ['toolset_unknown']])
  assert.not.ok((await show('core')).expanded_tools.includes('mcp__far__x'), 'a set of the program keeps its meaning')
})

test('an agent named without a session is judged by its definition, and an unknown one is an error', async ({
  scene,
}) => {
  await scene.agent('narrow', { permissions: 'approve-reads', lines: ['tools: ["service__session_*"]'] })
  const at = `agent_name=narrow&workspace_id=${scene.world.workspaceId}`
  const shown = (await scene.operator('GET', `/api/tools/service__tool_list?${at}`)).body.tool
  assert.equal(
    [shown.decision.callable, shown.decision.agent_policy_result, shown.decision.reason_codes],
    [false, 'deny', ['policy_denied']],
  )
  assert.is(shown.decision.system_permission_mode, 'approve-reads')
  const idsOf = ({ body }: Wire) => body.tools.map(({ descriptor }: Wire) => descriptor.tool_id)
  const isOwn = (id: string) => id.startsWith('service__')
  const listed = idsOf(await scene.operator('GET', `/api/tools?${at}`)).filter(isOwn)
  assert.ok(listed.length > 0)
  assert.ok(
    listed.every((id: string) => id.startsWith('service__session_')),
    String(listed),
  )
  const search = { query: 'session', agent_name: 'narrow', workspace_id: scene.world.workspaceId }
  const found = idsOf(await scene.operator('POST', '/api/tools/search', search)).filter(isOwn)
  assert.ok(found.length > 0 && found.every((id: string) => id.startsWith('service__session_')), String(found))
  const { toolset } = (await scene.operator('GET', `/api/toolsets/workspace?${at}`)).body
  assert.is(toolset.status, 'unavailable')
  assert.ok(toolset.reason_codes.includes('policy_denied'), String(toolset.reason_codes))
  for (const url of ['/api/tools', '/api/tools/mcp__far__x', '/api/toolsets'])
    assert.is((await scene.operator('GET', `${url}?agent_name=nobody`)).status, 404, url)
})

test.run()
