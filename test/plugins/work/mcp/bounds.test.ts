// timeout: 120s
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { HOSTILE, mcpScene } from './scene.js'

test('a server with a start timeout is a fault with its name, the seconds, the setting and its last output', async () => {
  const scene = await mcpScene()
  try {
    const server = { command: process.execPath, args: [HOSTILE, 'hangs'], start_timeout: '1s' }
    assert.is((await scene.put('slow', server)).status, 200)
    const { body } = await scene.request('GET', '/api/settings/mcp-servers/slow?probe=true')
    const { start_timeout: time, runtime_status: status } = body.mcp_server
    assert.equal([time, status.probe], ['1s', 'failed'])
    assert.match(
      status.diagnostic,
      /^slow \(config\.json\): it did not start within 1 s \(start_timeout of the server\)/,
    )
    for (const start_timeout of ['0', '2h', 'soon', 5]) {
      const refused = await scene.put('slow', { ...server, start_timeout })
      assert.is(refused.status, 400, JSON.stringify(refused.body))
    }
  } finally {
    await scene.close()
  }
})

test('a call timeout is a fault that names the setting, and the server continues', async () => {
  const scene = await mcpScene()
  try {
    const file = path.join(await temporaryFolder('calls'), 'calls')
    const quiet = { command: process.execPath, args: [HOSTILE, 'good', file], call_timeout: '1s' }
    await writeFile(path.join(scene.home, 'mcp.json'), JSON.stringify({ mcpServers: { quiet } }))
    await eventually(async () => (await scene.tools()).length > 0, 'tools of the server')
    const late = await scene.call('mcp__quiet__good', { text: 'wait' })
    assert.match(`${late.code} ${late.why}`, /quiet good: no answer within 1 s \(call_timeout of the server\)/)
    assert.is((await scene.call('mcp__quiet__good', { text: 'still here' })).text, 'still here')
  } finally {
    await scene.close()
  }
})

test('the last output of a dead server is shown without secrets', async () => {
  const scene = await mcpScene({ env: { MY_TOKEN: 'the-value-of-a-variable' } })
  try {
    const script = 'echo "missing API_KEY, token $TOKEN" >&2; exit 3'
    const crash = { command: 'sh', args: ['-c', script], secret_env: { TOKEN: 'env:MY_TOKEN' } }
    assert.is((await scene.put('crash', crash)).status, 200)
    const { body } = await scene.request('GET', '/api/settings/mcp-servers/crash?probe=true')
    const { diagnostic } = body.mcp_server.runtime_status
    assert.match(diagnostic, 'it said: missing API_KEY, token ')
    assert.not.match(diagnostic, 'the-value-of-a-variable')
  } finally {
    await scene.close()
  }
})

test.run()
