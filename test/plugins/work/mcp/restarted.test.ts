// timeout: 120s
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { type McpScene, mcpScene } from './scene.js'

const SERVER = path.resolve('test/plugins/work/mcp/http-server.mjs')

/** A real server in a process of its own, which is killed and started again at the same port. */
class RealServer {
  #child: ChildProcess | undefined
  port = 0

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`
  }

  async start(...args: string[]): Promise<void> {
    const child = spawn(process.execPath, [SERVER, String(this.port), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    const [line] = await once(child.stdout, 'data')
    this.port = Number(line)
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}

async function world(work: (scene: McpScene, server: RealServer) => Promise<void>, ...args: string[]): Promise<void> {
  const [scene, server] = [await mcpScene(), new RealServer()]
  try {
    await server.start(...args)
    await scene.put('web', { url: server.url })
    await work(scene, server)
  } finally {
    await scene.close()
    await server.kill()
  }
}

const stateOf = async (scene: McpScene, query = '') =>
  (await scene.request('GET', `/api/settings/mcp-servers/web${query}`)).body.mcp_server.runtime_status
const known = (scene: McpScene, tool: string) =>
  eventually(async () => (await scene.tools()).some(one => one.descriptor.id === `mcp__web__${tool}`), tool)

for (const [how, ...args] of [['404'], ['400', '--refuses-with=400']])
  test(`a restarted server over HTTP that refuses the old session with ${how} takes the next call`, () =>
    world(
      async (scene, server) => {
        await known(scene, 'echo')
        const first = await scene.call('mcp__web__echo', {})
        await server.kill()
        await server.start('echo', ...args)
        const second = await scene.call('mcp__web__echo', {})
        assert.match(first.text ?? '', /^echo \d+ 1$/)
        assert.match(second.text ?? '', /^echo \d+ 1$/, `${second.code} ${second.why}`)
        assert.is.not(second.text, first.text)
        assert.is((await stateOf(scene)).state, 'ready')
      },
      'echo',
      ...args,
    ))

test('calls refused together are each made once on the restarted server', () =>
  world(async (scene, server) => {
    await known(scene, 'echo')
    await scene.call('mcp__web__echo', {})
    await server.kill()
    await server.start('echo')
    const all = await Promise.all(Array.from({ length: 8 }, () => scene.call('mcp__web__echo', {})))
    const counts = all.map(({ text = '' }) => Number(text.split(' ')[2]))
    assert.equal(
      counts.sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8],
      JSON.stringify(all),
    )
  }, 'echo'))

test('a call during an outage reports it, and the first one after it is made', () =>
  world(async (scene, server) => {
    await known(scene, 'echo')
    await scene.call('mcp__web__echo', {})
    await server.kill()
    for (let n = 0; n < 3; n++) {
      const { code, reasons, why } = await scene.call('mcp__web__echo', {})
      assert.equal([code, reasons], ['tool_unavailable', 'mcp_unreachable'], why)
      assert.match(why ?? '', 'ECONNREFUSED')
    }
    assert.is((await stateOf(scene)).state, 'failed')
    await server.start('echo')
    const { text, why } = await scene.call('mcp__web__echo', {})
    assert.match(text ?? '', /^echo \d+ 1$/, why)
  }, 'echo'))

test('a tool changed by a server restart is not called, and the new list is shown', () =>
  world(async (scene, server) => {
    await known(scene, 'echo')
    await scene.call('mcp__web__echo', {})
    await server.kill()
    await server.start('echo=does something else', 'more')
    assert.equal((await scene.call('mcp__web__echo', {})).reasons, 'runtime_descriptor_mismatch')
    assert.match((await scene.call('mcp__web__echo', {})).text ?? '', /^echo \d+ 1$/)
    await known(scene, 'more')
  }, 'echo'))

test('a call fails soon when its server ends, and is not repeated', () =>
  world(
    async (scene, server) => {
      await known(scene, 'hangs')
      const hanging = scene.call('mcp__web__hangs', {})
      await eventually(async () => (await stateOf(scene)).state === 'ready', 'the connection')
      await scene.call('mcp__web__echo', {})
      await server.kill()
      await server.start('hangs', 'echo')
      const { code, reasons, why } = await hanging
      assert.equal([code, reasons], ['tool_unavailable', 'mcp_unreachable'], why)
      assert.match((await scene.call('mcp__web__echo', {})).text ?? '', /^echo \d+ 1$/)
    },
    'hangs',
    'echo',
  ))

test('tools of a restarted server are listed without a call, and a probe reports the outage', () =>
  world(async (scene, server) => {
    await known(scene, 'echo')
    await server.kill()
    await server.start('echo', 'more')
    await known(scene, 'more')
    await server.kill()
    const status = await stateOf(scene, '?probe=true')
    assert.equal([status.state, status.probe, status.reason], ['failed', 'failed', 'mcp_unreachable'])
    await server.start('other')
    assert.is((await stateOf(scene, '?probe=true')).state, 'ready')
    await known(scene, 'other')
  }, 'echo'))

test.run()
