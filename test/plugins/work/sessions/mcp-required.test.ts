// timeout: 120s
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { vault } from '../../../../plugins/index.js'
import { agentText, openWorld } from '../../../fixtures/session-world.js'
import { EVERYTHING } from '../mcp/scene.js'

test('an unusable server is omitted from a session with a warning; a required one refuses the session', async () => {
  const world = await openWorld({ plugins: [vault] })
  const save = (mcpServers: object) => writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers }))
  const crash = { command: 'sh', args: ['-c', 'echo "missing API_KEY" >&2; exit 3'] }
  const near = { command: process.execPath, args: [EVERYTHING] }
  const vaulted = { command: 'x', secret_env: { TOKEN: 'vault:mcp/global/vaulted/env/TOKEN' } }
  try {
    await world.agent('ada')
    const prompt = async () => world.prompt((await world.session('ada')).at, 'handed')
    await save({ near: { ...near, required: true }, vaulted, bad: { args: [] } })
    const events = await prompt()
    const handed = JSON.parse(agentText(events)).map(({ name }: { name: string }) => name)
    assert.equal(handed, ['near'])
    const warned = events.filter(({ content }) => content.warning === 'mcp_server_left_out')
    const texts = warned.map(({ content }) => content.text).join('\n')
    assert.match(texts, /without the MCP server "vaulted": TOKEN of the MCP server vaulted needs/)
    assert.match(texts, /mcp\.json:1:\d+: the server "bad" is left out: it has neither/)
    for (const [servers, why] of [
      [{ crash: { ...crash, required: true } }, /"crash": .*it said: missing API_KEY/],
      [{ vaulted: { ...vaulted, required: true } }, /"vaulted": .*TOKEN of the MCP server vaulted needs/],
      [{ bad: { args: [], required: true } }, /the server "bad" is left out: it has neither/],
    ] as const) {
      await save({ near, ...servers })
      const [end] = (await prompt()).slice(-1)
      assert.match(end.failure?.summary, why)
    }
    await save({ near, crash: { ...crash, required: true, disabled: true } })
    assert.is(JSON.parse(agentText(await prompt())).length, 1)
  } finally {
    await world.close()
  }
})

test.run()
