// timeout: 120s
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { handed, openHosting } from './hosting.js'
import { EVERYTHING, type McpScene, mcpScene } from './scene.js'

const LATER = fileURLToPath(new URL('./later-server.mjs', import.meta.url))
const program = { command: process.execPath, args: [LATER] }

const idsOf = async (scene: McpScene) => (await scene.tools()).map(({ descriptor: { id } }) => id).sort()

/** The server over HTTP: its address, and the methods that it was asked for. */
async function overHttp() {
  const child = spawn(process.execPath, [LATER, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const methods: string[] = []
  const url = await new Promise<string>(resolve => {
    createInterface({ input: child.stdout }).on('line', line =>
      line.startsWith('http:') ? resolve(line) : methods.push(line),
    )
  })
  return { url, methods, end: () => child.kill() }
}

test('a program with only the second protocol line is used', async () => {
  const scene = await mcpScene()
  try {
    await scene.put('later', program)
    await eventually(async () => (await idsOf(scene)).length === 2, 'two tools')
    assert.equal(await scene.call('mcp__later__echo', { a: 1 }), { text: 'echo {"a":1}' })
  } finally {
    await scene.close()
  }
})

test('a server over HTTP with only the second line is used, and refuses the first line once', async () => {
  const server = await overHttp()
  const scene = await mcpScene()
  try {
    await scene.put('later', { url: server.url })
    await eventually(async () => (await idsOf(scene)).length === 2, 'two tools')
    assert.equal(await scene.call('mcp__later__echo', { a: 1 }), { text: 'echo {"a":1}' })
    assert.is(server.methods.filter(method => method === 'none').length, 1)
    assert.is(server.methods.filter(method => method === 'server/discover').length, 1)
  } finally {
    await scene.close()
    server.end()
  }
})

test('changed tools are listed again on the second line', async () => {
  const server = await overHttp()
  const scene = await mcpScene()
  try {
    await scene.put('later', program)
    await scene.put('remote', { url: server.url })
    for (const name of ['later', 'remote']) {
      await eventually(async () => (await idsOf(scene)).includes(`mcp__${name}__grow`), `the tools of ${name}`)
      assert.is((await scene.call(`mcp__${name}__grow`, {})).text, 'grow {}')
      await eventually(async () => (await idsOf(scene)).includes(`mcp__${name}__grown2`), `a tool more of ${name}`)
    }
  } finally {
    await scene.close()
    server.end()
  }
})

test('a server without the handshake method is reported with its own refusal', async () => {
  const scene = await mcpScene()
  try {
    const refuse = `process.stdin.on('data', data => { for (const line of String(data).split('\\n').filter(Boolean)) {
      const { id } = JSON.parse(line)
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'nothing of the kind' } }))
    } })`
    await scene.put('neither', { command: process.execPath, args: ['-e', refuse] })
    const { body } = await scene.request('GET', '/api/settings/mcp-servers/neither?probe=true')
    assert.match(JSON.stringify(body), /nothing of the kind/)
  } finally {
    await scene.close()
  }
})

test('a server with both lines is used with the first', async () => {
  const scene = await mcpScene()
  try {
    await scene.put('everything', { command: process.execPath, args: [EVERYTHING] })
    await eventually(async () => (await idsOf(scene)).includes('mcp__everything__echo'), 'its tools')
    assert.match((await scene.call('mcp__everything__echo', { message: 'hi' })).text ?? '', /hi/)
  } finally {
    await scene.close()
  }
})

test('the daemon serves agents on either line', async () => {
  const { world } = await openHosting()
  try {
    for (const [mode, era] of [
      ['legacy', 'legacy'],
      ['auto', 'modern'],
      [{ pin: '2026-07-28' }, 'modern'],
    ] as const) {
      const { proxy } = await handed(world)
      if (!proxy) throw new Error('the agent was handed no server')
      const own = Object.fromEntries(proxy.env.map(({ name, value }) => [name, value]))
      const env = { PATH: process.env.PATH ?? '', ...own }
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
      const { command, args } = proxy
      await client.connect(new StdioClientTransport({ command, args: [...args], env, stderr: 'ignore' }))
      try {
        assert.is(client.getProtocolEra(), era)
        assert.equal(
          (await client.listTools()).tools.map(({ name }) => name),
          ['tool_search', 'tool_show', 'tool_call'],
        )
        const found = await client.callTool({ name: 'tool_search', arguments: { query: '' } })
        assert.match(JSON.stringify(found), /tools/)
        if (era === 'modern') {
          const refused = await client.listen({ toolsListChanged: true }).catch(error => error)
          assert.match(String(refused), /[Ss]ubscription limit/)
        }
      } finally {
        await client.close()
      }
    }
  } finally {
    await world.close()
  }
})

test.run()
