// timeout: 120s
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { HOSTILE, mcpScene } from './scene.js'

for (const [how, limit] of [
  ['empty objects', /more than 1000 lines in a row that are not messages/],
  ['garbage', /more than 1000 lines in a row that are not messages/],
  ['empty lines', /more than 1000 lines in a row that are not messages/],
  ['notifications', /it floods: a burst of over 200000 lines/],
] as const)
  test(`a server that floods with ${how} is killed with the limit as the reason`, async () => {
    const scene = await mcpScene()
    try {
      await scene.put('loud', { command: process.execPath, args: [HOSTILE, how, path.join(scene.home, 'loud.log')] })
      const shown = async () => (await scene.request('GET', '/api/settings/mcp-servers/loud')).body.mcp_server
      const request = scene.request('GET', '/api/settings/mcp-servers/loud?probe=true')
      const { runtime_status: status } = await eventually(async () => {
        const server = await shown()
        return server.runtime_status.state === 'failed' && server
      }, 'the end of the flood')
      assert.match(status.diagnostic, limit)
      await request
    } finally {
      await scene.close()
    }
  })

test.run()
