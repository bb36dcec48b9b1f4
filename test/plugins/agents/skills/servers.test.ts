import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hashFiles } from '../../../../plugins/agents/skills/tree-hash.js'
import { eventually } from '../../../fixtures/session-world.js'
import { HOSTILE, type McpScene, mcpScene } from '../../work/mcp/scene.js'

const server = (name: string, command = process.execPath, args = `['${HOSTILE}', plain]`) => [
  'metadata:',
  '  svc:',
  '    mcp_servers:',
  `      ${name}: { command: '${command}', args: ${args} }`,
]

async function skill(folder: string, name: string, lines: readonly string[], files: Record<string, string> = {}) {
  const at = path.join(folder, name)
  await mkdir(at, { recursive: true })
  const head = [`name: ${name}`, 'description: brings a server', ...lines]
  await writeFile(path.join(at, 'SKILL.md'), `---\n${head.join('\n')}\n---\nSteps.\n`)
  for (const [file, text] of Object.entries(files)) await writeFile(path.join(at, file), text)
}

const listed = async (scene: McpScene, query = '') => {
  const { mcp_servers: servers } = (await scene.request('GET', `/api/settings/mcp-servers${query}`)).body
  return servers.map(({ name }: { name: string }) => name).sort()
}

test('a server of a user skill is available while the skill is enabled, and its files are found', async () => {
  const scene = await mcpScene()
  try {
    const script = `import ${JSON.stringify(HOSTILE)}`
    await skill(path.join(scene.home, 'skills'), 'notes', server('notes', process.execPath, "['./main.mjs']"), {
      'main.mjs': script,
    })
    assert.equal(await listed(scene), ['notes'])
    await eventually(async () => (await scene.tools()).length > 0, 'its tools')
    assert.is((await scene.call('mcp__notes__good', { text: 'of a skill' })).text, 'of a skill')
    assert.is((await scene.request('POST', '/api/skills/notes/disable', {})).status < 300, true)
    assert.equal(await listed(scene), [])
  } finally {
    await scene.close()
  }
})

test('an unusable server of a skill is skipped and named', async () => {
  const scene = await mcpScene()
  try {
    const lines = [...server('fine'), '      both: { command: x, url: "http://x" }', '      none: 7']
    await skill(path.join(scene.home, 'skills'), 'mixed', lines)
    await skill(path.join(scene.home, 'skills'), 'other', server('other'))
    const { mcp_servers: servers, problems } = (await scene.request('GET', '/api/settings/mcp-servers')).body
    assert.equal(servers.map(({ name }: { name: string }) => name).sort(), ['fine', 'other'])
    assert.match(JSON.stringify(problems), 'both')
    assert.match(JSON.stringify(problems), 'none')
    const { items } = (await scene.request('GET', '/api/doctor?only=mcp.servers')).body
    assert.equal(
      items.map(({ severity, code }: { severity: string; code: string }) => [severity, code]),
      [['warning', 'mcp_file_invalid']],
    )
  } finally {
    await scene.close()
  }
})

test('a server of an installed skill counts only with the permission of the user', async () => {
  const scene = await mcpScene()
  try {
    const folder = path.join(scene.home, 'skills')
    await skill(folder, 'bought', server('bought'))
    const bytes = await readFile(path.join(folder, 'bought/SKILL.md'))
    const meta = {
      name: 'bought',
      registry: 'https://catalog.example',
      slug: 'bought',
      installed_at: '2030-01-01T00:00:00.000Z',
      hash: hashFiles([{ path: 'SKILL.md', bytes }]),
    }
    await writeFile(path.join(folder, 'bought', '.svc-meta.json'), JSON.stringify(meta))
    const { body } = await scene.request('GET', '/api/skills/bought')
    assert.is(body.skill.source, 'marketplace', JSON.stringify(body))
    assert.equal(await listed(scene), [])
    const changed = await scene.request('PATCH', '/api/settings/skills', {
      config: { allowed_marketplace_mcp: ['bought'] },
    })
    assert.is(changed.status, 200, JSON.stringify(changed.body))
    assert.equal(await listed(scene), ['bought'])
  } finally {
    await scene.close()
  }
})

test('a workspace skill brings no server before the trust, and names no foreign secret', async () => {
  const scene = await mcpScene()
  try {
    const { id, root } = await scene.workspace({ '.svc/mcp.json': '{}' })
    const at = `?scope=workspace&workspace_id=${id}`
    await skill(path.join(root, '.svc/skills'), 'local', server('local'))
    assert.equal(await listed(scene, at), [])
    const trust = async () => {
      const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
    }
    await trust()
    assert.equal(await listed(scene, at), ['local'])
    const lines = [
      ...server('local').slice(0, 3),
      '      - name: local',
      '        command: x',
      '        secret_env: { A: env:HOME }',
    ]
    await skill(path.join(root, '.svc/skills'), 'local', lines)
    await trust()
    assert.equal(await listed(scene, at), [])
  } finally {
    await scene.close()
  }
})

test.run()
