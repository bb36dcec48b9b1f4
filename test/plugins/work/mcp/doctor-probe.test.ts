// timeout: 120s
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { HOSTILE, mcpScene } from './scene.js'

test('doctor --probe starts and ends each MCP server, and names failed ones with their last output', async () => {
  const scene = await mcpScene({ env: { MY_TOKEN: 'the-value-of-a-variable' } })
  try {
    const starts = path.join(scene.home, 'starts')
    const note = (name: string, then: string) => ['-c', `echo ${name} $$ >> '${starts}'; ${then}`]
    const good = note('good', `exec '${process.execPath}' '${HOSTILE}' plain`)
    const crash = note('crash', 'echo "missing API_KEY, token $TOKEN" >&2; exit 3')
    const servers = {
      good: { command: 'sh', args: good },
      crash: { command: 'sh', args: crash, env: {}, secret_env: { TOKEN: 'env:MY_TOKEN' } },
      slow: { command: process.execPath, args: [HOSTILE, 'hangs'], start_timeout: '1s' },
      off: { command: 'sh', args: note('off', 'exit 1'), disabled: true },
    }
    await writeFile(path.join(scene.home, 'mcp.json'), JSON.stringify({ mcpServers: servers }))
    const agent = path.join(scene.home, 'agents', 'writer')
    await mkdir(agent, { recursive: true })
    const own = `{ name: of-agent, command: sh, args: ['-c', 'echo lost >&2; exit 4'] }`
    await writeFile(path.join(agent, 'AGENT.md'), `---\nname: writer\nmcp_servers: [${own}]\n---\nYou write.\n`)
    const { id } = await scene.workspace({
      '.svc/mcp.json': JSON.stringify({ mcpServers: { foreign: { command: 'sh', args: note('foreign', 'exit 1') } } }),
    })
    const doctor = async (query = '') =>
      (await scene.request('GET', `/api/doctor?only=mcp.servers${query}`)).body.items as Reply[]
    const startLines = async () => (await readFile(starts, 'utf8').catch(() => '')).split('\n').filter(Boolean)

    assert.equal(await doctor(), [], 'a report that nobody asked to probe starts nothing')
    assert.equal(await startLines(), [])

    const items = await doctor('&probe=true')
    assert.equal(items.map(item => [item.id, item.code]).sort(), [
      ['mcp:server:crash', 'mcp_server_failed'],
      ['mcp:server:of-agent', 'mcp_server_failed'],
      ['mcp:server:slow', 'mcp_server_failed'],
    ])
    const text = JSON.stringify(items)
    assert.match(text, 'missing API_KEY')
    assert.match(text, 'it did not start within 1 s (start_timeout of the server)')
    assert.not.match(text, 'the-value-of-a-variable')
    const first = await startLines()
    assert.equal(first.map(line => line.split(' ')[0]).sort(), ['crash', 'good'], 'neither off nor untrusted')
    const pid = Number(first.find(line => line.startsWith('good'))?.split(' ')[1])
    await eventually(async () => {
      try {
        return process.kill(pid, 0) && false
      } catch {
        return true
      }
    }, 'the end of the server that works')

    // One that runs for somebody is not started a second time.
    await eventually(async () => (await scene.call('mcp__good__good', { text: 'x' })).text === 'x', 'a call')
    const running = (await startLines()).length
    await doctor('&probe=true')
    const more = (await startLines()).slice(running)
    assert.equal(
      more.map(line => line.split(' ')[0]),
      ['crash'],
    )
    assert.ok(id)
  } finally {
    await scene.close()
  }
})

test.run()
