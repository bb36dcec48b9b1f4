// timeout: 180s
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../../../plugins/index.js'
import { agentText, eventually, openWorld } from '../../../fixtures/session-world.js'
import { EVERYTHING } from './scene.js'

const BIN = path.resolve('dist/bin')

async function connect(command: string, args: readonly string[], env: Record<string, string>) {
  const [{ Client }, { StdioClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/stdio.js'),
  ])
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StdioClientTransport({ command, args: [...args], env, stderr: 'ignore' }))
  return client
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content.map(({ text }) => text).join('')

const world = () => {
  const own = ['daemon', 'resources', 'workspaces', 'providers', 'agents', 'sessions', 'mcp']
  return openWorld({
    config: { tools: { policy: { external_default: 'ask' } } },
    plugins: inTree.filter(({ name }) => !own.includes(name)),
    listen: ['socket'],
    env: { PATH: process.env.PATH, SVC_BIN_DIR: BIN, XDG_RUNTIME_DIR: '/tmp' },
  })
}

test('an agent searches and calls MCP tools through the daemon, and a user allows the call', async () => {
  const daemon = await world()
  let client: Client | undefined
  try {
    const everything = { command: process.execPath, args: [EVERYTHING] }
    await writeFile(path.join(daemon.home, 'mcp.json'), JSON.stringify({ mcpServers: { everything } }))
    // The definition comes with the files of the workspace: somebody has to trust them.
    await daemon.agent('ada', { permissions: 'approve-reads' })
    const at = `/api/workspaces/${daemon.workspaceId}/trust`
    const { digest } = (await daemon.kernel.request('GET', at)).body.trust
    await daemon.kernel.request('PUT', at, { digest })
    const session = await daemon.session('ada', { sandbox: 'none' })
    const servers = JSON.parse(agentText(await daemon.prompt(session.at, 'handed')))
    const proxy = servers.find(({ name }: { name: string }) => name === 'svc')
    const pairs = proxy.env.map(({ name, value }: { name: string; value: string }) => [name, value])
    const agent = await connect(proxy.command, proxy.args, {
      PATH: process.env.PATH ?? '',
      ...Object.fromEntries(pairs),
    })
    client = agent
    const ask = async (name: string, input: object) => textOf(await agent.callTool({ name, arguments: input as never }))
    await eventually(
      async () => (await ask('tool_search', { query: 'echo' })).includes('mcp__everything__echo'),
      'the tool',
    )
    assert.match(await ask('tool_show', { id: 'mcp__everything__echo' }), 'input_schema')
    const called = ask('tool_call', { id: 'mcp__everything__echo', input: { message: 'through the daemon' } })
    let over: string | undefined
    void called.then(
      text => {
        over = text
      },
      () => {},
    )
    const approval = await eventually(async () => {
      const { approvals } = (await daemon.kernel.request('GET', '/api/tool-approvals')).body
      return approvals[0] ?? over
    }, 'the question')
    assert.is(over, undefined, 'it was not asked')
    assert.is(approval.tool_id, 'mcp__everything__echo')
    const decided = await daemon.kernel.request(
      'POST',
      `/api/tool-approvals/${approval.id ?? approval.approval_id}/decide`,
      {
        decision: 'allow',
      },
    )
    assert.is(decided.status, 200, JSON.stringify(decided.body))
    assert.match(await called, 'through the daemon')
  } finally {
    await client?.close()
    await daemon.close()
  }
})

test('svc mcp serve offers read-only tools to another client, and more with an option', async () => {
  const daemon = await world()
  const env = { PATH: process.env.PATH ?? '', HOME: daemon.home, SVC_HOME: daemon.home }
  try {
    await mkdir(path.join(daemon.home, 'agents/ada'), { recursive: true })
    await writeFile(path.join(daemon.home, 'agents/ada/AGENT.md'), '---\nname: ada\n---\nAda.\n')
    const reads = await connect(process.execPath, [path.resolve('dist/svc.cjs'), 'mcp', 'serve'], env)
    const { tools } = await reads.listTools()
    const names = tools.map(({ name }) => name)
    assert.ok(names.length > 5 && tools.every(({ annotations }) => annotations?.readOnlyHint), names.join(' '))
    assert.match(textOf(await reads.callTool({ name: 'service__workspace_list', arguments: {} })), daemon.workspaceId)
    const wish = { name: 'ada' }
    const through = { id: 'service__agent_delete', input: wish }
    for (const [name, input] of [
      ['service__agent_delete', wish],
      ['service__tool_call', through],
    ] as const)
      assert.match(
        textOf(await reads.callTool({ name, arguments: input })),
        'tool_not_found (tool_unknown): no such tool',
      )
    assert.is((await daemon.kernel.request('GET', '/api/agents/ada')).status, 200)
    await reads.close()
    const all = await connect(process.execPath, [path.resolve('dist/svc.cjs'), 'mcp', 'serve', '--all'], env)
    const more = (await all.listTools()).tools.map(({ name }) => name)
    assert.ok(more.length > names.length && more.includes('service__agent_delete'))
    await all.callTool({ name: 'service__agent_delete', arguments: wish })
    assert.is((await daemon.kernel.request('GET', '/api/agents/ada')).status, 404)
    await all.close()
  } finally {
    await daemon.close()
  }
})

test.run()
