import { mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { label, testCases } from '../../../fixtures/cases.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { type Scene, scene } from '../../desk/settings/scene.js'

const agent = (name: string, more = '') => `---\nname: ${name}\n${more}---\nYou do what you are told.\n`
const RUNS = agent('runs', "command: 'cat'\n")

test('executable content of a workspace starts only when trusted, and a change asks again', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace({ '.svc/agents/runs/AGENT.md': RUNS })
    const at = `/api/workspaces/${id}/trust`
    const start = async (name = 'runs') => {
      const { status, body } = await daemon.request('POST', '/api/sessions', { workspace: id, agent_name: name })
      return [status, body.code]
    }
    const state = async () => (await daemon.request('GET', at)).body.trust
    assert.equal([(await state()).state, (await state()).files], ['untrusted', ['.svc/agents/runs/AGENT.md']])
    assert.equal(await start(), [409, 'agent_untrusted'])

    const { digest } = await state()
    await writeFile(path.join(root, '.svc/agents/runs/AGENT.md'), agent('runs', "command: 'cat -v'\n"))
    const late = await daemon.request('PUT', at, { digest })
    assert.equal([late.status, late.body.code], [409, 'trust_changed'], 'what was looked at is what is trusted')
    assert.is((await daemon.request('PUT', at, { digest: (await state()).digest })).body.trust.state, 'trusted')
    assert.is.not((await start())[1], 'agent_untrusted')

    for (const change of [
      () => writeFile(path.join(root, '.svc/agents/runs/AGENT.md'), RUNS),
      async () => {
        await mkdir(path.join(root, '.svc/skills/new'), { recursive: true })
        await writeFile(path.join(root, '.svc/skills/new/SKILL.md'), 'x')
      },
      async () => {
        await writeFile(path.join(root, 'elsewhere.md'), agent('runs', "command: 'cat -e'\n"))
        await rm(path.join(root, '.svc/agents/runs/AGENT.md'))
        await symlink('../../../elsewhere.md', path.join(root, '.svc/agents/runs/AGENT.md'))
      },
      () => writeFile(path.join(root, 'elsewhere.md'), agent('runs', "command: 'cat -n'\n")),
    ]) {
      await change()
      assert.is((await state()).state, 'changed', String(change))
      assert.equal(await start(), [409, 'agent_untrusted'])
      await daemon.request('PUT', at, { digest: (await state()).digest })
      assert.is((await state()).state, 'trusted')
    }
    await writeFile(path.join(root, '.svc/agents/runs/SOUL.md'), 'texts run nothing')
    assert.is((await state()).state, 'trusted')
    assert.is((await daemon.request('DELETE', at)).status, 204)
    assert.equal(await start(), [409, 'agent_untrusted'])
  } finally {
    await daemon.close()
  }
})

const HOOKED = agent('hooked', 'hooks:\n  - { name: gate, event: tool.pre_call, command: ./gate.sh }\n')
const server = (value: unknown) => JSON.stringify({ mcpServers: { one: value } })

async function trusted(daemon: Scene, id: string): Promise<void> {
  const { digest } = await trustOf(daemon, id)
  const { status, body } = await daemon.request('PUT', `/api/workspaces/${id}/trust`, { digest })
  assert.equal([status, body.trust?.state], [200, 'trusted'], JSON.stringify(body))
}

const trustOf = async (daemon: Scene, id: string) =>
  (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust

testCases({
  open: () => scene(),
  close: daemon => daemon.close(),
  cases: [
    ['.svc/agents/memory/AGENT.md', RUNS],
    ['.svc/agents/SOUL.md/AGENT.md', RUNS],
    ['.svc/agents/one/memory/run.sh', 'true'],
    ['.svc/skills/memory/SKILL.md', HOOKED],
    ['.svc/skills/HEARTBEAT.md', 'a text of no agent'],
    ['.svc/skills/ok/memory/run.sh', 'true'],
    ['.svc/skills/ok/SOUL.md', 'true'],
    ['.svc/skills/ok/workspace.toml', ''],
    ['.svc/Memory/run.sh', 'true'],
    ['.svc/mcp.json', '{}'],
    ['.svc/capabilities/one.toml', ''],
    ['.svc/extensions/one/extension.toml', ''],
    ['.agents/skills/one/SKILL.md', HOOKED],
    ['.claude/skills/one/scripts/run.py', 'pass'],
    ['.mcp.json', '{}'],
  ] as const,
  name: ([file]) => `executable content counts wherever it lies: ${file}`,
  run: async (daemon, [file, text]) => {
    const { id, root } = await daemon.workspace({ [file]: text })
    const { state, files } = await trustOf(daemon, id)
    assert.equal([state, files], ['untrusted', [file]])
    await trusted(daemon, id)
    await writeFile(path.join(root, file), `${text} `)
    assert.is((await trustOf(daemon, id)).state, 'changed')
  },
})

test('identity, memories and prompt texts run nothing, unless they are links', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace({
      '.svc/memory/notes/one.md': 'x',
      '.svc/SOUL.md': 'x',
      '.svc/agents/one/SOUL.md': 'x',
      '.svc/agents/one/HEARTBEAT.md': 'x',
      '.agents/readme.md': 'x',
      'tools/run.sh': 'true',
    })
    assert.equal([(await trustOf(daemon, id)).state, (await trustOf(daemon, id)).files], ['empty', []])
    await rm(path.join(root, '.svc/memory'), { recursive: true })
    await symlink('../tools', path.join(root, '.svc/memory'))
    await symlink('../tools/run.sh', path.join(root, '.svc/HEARTBEAT.md'))
    assert.equal((await trustOf(daemon, id)).files, ['.svc/HEARTBEAT.md', '.svc/memory/run.sh'])
  } finally {
    await daemon.close()
  }
})

const skill = (hook: string) => agent('one', `metadata:\n  svc:\n    hooks:\n      - ${hook}\n`)

testCases({
  open: () => scene(),
  close: daemon => daemon.close(),
  cases: [
    ['.svc/agents/one/SOUL.md', '.svc/agents/one/AGENT.md', agent('one', 'command: ./SOUL.md\n')],
    ['.svc/SOUL.md', '.svc/skills/one/SKILL.md', skill('{ event: turn.start, command: ./.svc/SOUL.md }')],
    ['.svc/memory/run.sh', '.svc/mcp.json', server({ command: './.svc/memory/run.sh' })],
    ['tools/server.mjs', '.svc/mcp.json', server({ command: 'node', args: ['tools/server.mjs'] })],
    ['tools/server.mjs', '.mcp.json', server({ command: 'node', args: ['--flag=./tools/server.mjs'] })],
    ['tools/server.mjs', '.svc/mcp.json', server({ command: 'node', args: ['server.mjs'], cwd: 'tools' })],
    ['tools/server.mjs', '.svc/mcp.json', server({ command: '$' + '{workspace}/tools/server.mjs' })],
    ['tools/server.mjs', '.svc/mcp.json', server({ command: '$' + '{SERVER:-./tools/server.mjs}' })],
    ['tools/gate.sh', '.svc/config.json', '{ "hooks": [{ "command": "sh -c \'cd tools && ./gate.sh\'" }] }'],
    ['tools/gate.sh', '.svc/config.json', '// of us\n{ "hooks": [{ "command": "\\u002e/tools\\u002fgate.sh" }] }'],
    ['tools/gate.sh', '.svc/skills/one/SKILL.md', skill('{ event: turn.start, command: "tools\\x2fgate.sh" }')],
    ['dev.env', '.svc/mcp.json', server({ command: 'x', envFile: './dev.env' })],
    ['tools/hook.cjs', '.svc/mcp.json', server({ command: 'node', args: ['./tools/hook'] })],
    ['pkg/tool.py', '.svc/mcp.json', server({ command: 'python3', args: ['-m', 'pkg.tool'] })],
    ['pkg/__main__.py', '.svc/mcp.json', server({ command: 'python3', args: ['pkg'] })],
    ['package.json', '.svc/mcp.json', server({ command: 'npm', args: ['run', 'serve'] })],
    ['hooks.d/10-one', '.svc/mcp.json', server({ command: 'run-parts', args: ['./hooks.d'] })],
    ['tools/lib.sh', '.svc/skills/one/run.sh', '. ./tools/lib.sh'],
  ] as const,
  name: ([named, from, text]) =>
    `the file ${named} is trusted with ${from}: ${label(text.split('\n').at(-1) || text, 50)}`,
  run: async (daemon, [named, from, text]) => {
    const { id, root } = await daemon.workspace({ [from]: text, [named]: 'one', 'other.txt': 'one' })
    const { files } = await trustOf(daemon, id)
    assert.equal([...files].sort(), [from, named].sort())
    await trusted(daemon, id)
    await writeFile(path.join(root, 'other.txt'), 'two')
    assert.is((await trustOf(daemon, id)).state, 'trusted')
    await writeFile(path.join(root, named), 'two')
    assert.is((await trustOf(daemon, id)).state, 'changed')
  },
})

test('a referenced link counts as its target, and a file that appears later counts too', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace({ '.svc/mcp.json': server({ command: './run' }), 'real.sh': 'one' })
    await trusted(daemon, id)
    await symlink('real.sh', path.join(root, 'run'))
    assert.is((await trustOf(daemon, id)).state, 'changed')
    await trusted(daemon, id)
    await writeFile(path.join(root, 'real.sh'), 'two')
    assert.is((await trustOf(daemon, id)).state, 'changed')
    await rm(path.join(root, 'run'))
    await symlink('/bin/true', path.join(root, 'run'))
    await trusted(daemon, id)
    await rm(path.join(root, 'run'))
    await symlink('/bin/false', path.join(root, 'run'))
    assert.is((await trustOf(daemon, id)).state, 'changed')
  } finally {
    await daemon.close()
  }
})

test('a workspace around the home of the daemon does not include the home', async () => {
  const root = await realpath(await temporaryFolder('around'))
  await mkdir(path.join(root, '.svc/agents/runs'), { recursive: true })
  await writeFile(path.join(root, '.svc/agents/runs/AGENT.md'), RUNS)
  const daemon = await scene('', { home: path.join(root, '.svc') })
  try {
    const { body } = await daemon.request('POST', '/api/workspaces/resolve', { path: root })
    assert.equal((await trustOf(daemon, body.workspace.id)).files, [])
  } finally {
    await daemon.close()
  }
})

test('hooks, MCP servers and approve-all count as code; a prompt does not', async () => {
  const daemon = await scene()
  try {
    const { id } = await daemon.workspace({
      '.svc/agents/served/AGENT.md': agent('served', 'mcp_servers:\n  - { name: git, command: uvx }\n'),
      '.svc/agents/hooked/AGENT.md': agent(
        'hooked',
        'hooks:\n  - { name: gate, event: tool.pre_call, command: ./gate.sh }\n',
      ),
      '.svc/agents/loose/AGENT.md': agent('loose', 'permissions: approve-all\n'),
      '.svc/agents/plain/AGENT.md': agent('plain', 'permissions: approve-reads\n'),
    })
    const codes: Record<string, string> = {}
    for (const name of ['served', 'hooked', 'loose', 'plain'])
      codes[name] = (await daemon.request('POST', '/api/sessions', { workspace: id, agent_name: name })).body.code
    assert.equal([codes.served, codes.hooked, codes.loose], Array(3).fill('agent_untrusted'))
    assert.is.not(codes.plain, 'agent_untrusted')
  } finally {
    await daemon.close()
  }
})

test('an agent written by the operator through the daemon keeps the existing trust', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace()
    const create = (name: string) =>
      daemon.request('POST', '/api/agents', {
        scope: 'workspace',
        workspace: id,
        agent: { name, command: 'cat', prompt: 'Do.' },
      })
    const state = async () => (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust.state
    assert.is(await state(), 'empty')
    assert.is((await create('one')).status, 201)
    assert.is(await state(), 'trusted')
    await writeFile(path.join(root, '.svc/mcp.json'), '{}')
    assert.is((await create('two')).status, 201)
    assert.is(await state(), 'changed', 'what somebody else wrote is not trusted along')
  } finally {
    await daemon.close()
  }
})

test('a workspace definition names no secret of the daemon or of others, even when trusted', async () => {
  const daemon = await scene()
  try {
    const { id, root } = await daemon.workspace()
    for (const [reference, isForeign] of [
      ['env:HOME', true],
      ['vault:mcp/global/git/env/TOKEN', true],
      ['vault:mcp/ws/ws_0000000000000000/git', true],
      [`vault:mcp/ws/${id}/git`, false],
    ] as const) {
      const server = `mcp_servers:\n  - { name: git, command: uvx, secret_env: { TOKEN: "${reference}" } }\n`
      await mkdir(path.join(root, '.svc/agents/thief'), { recursive: true })
      await writeFile(path.join(root, '.svc/agents/thief/AGENT.md'), agent('thief', server))
      const { digest } = (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await daemon.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
      const { body } = await daemon.request('POST', '/api/sessions', { workspace: id, agent_name: 'thief' })
      assert.is(body.code === 'agent_reference_forbidden', isForeign, `${reference}: ${JSON.stringify(body)}`)
    }
  } finally {
    await daemon.close()
  }
})

test('nothing is trusted while the trust plugin is not running', async () => {
  const daemon = await scene('{ "plugins": { "disabled": ["trust"] } }')
  try {
    const { id } = await daemon.workspace({
      '.svc/agents/runs/AGENT.md': RUNS,
      '.svc/agents/says/AGENT.md': agent('says'),
    })
    const start = async (name: string) =>
      (await daemon.request('POST', '/api/sessions', { workspace: id, agent_name: name })).body.code
    assert.is(await start('runs'), 'agent_untrusted')
    assert.is.not(await start('says'), 'agent_untrusted')
  } finally {
    await daemon.close()
  }
})

test('workspace settings have no effect until the workspace is trusted', async () => {
  const daemon = await scene()
  try {
    const config = '{\n  // of the project\n  "cmd_palette": { "personalization": false }\n}\n'
    const { id } = await daemon.workspace({ '.svc/config.json': config })
    const url = `/api/settings/cmd-palette?scope=workspace&workspace_id=${id}`
    const shown = async () => (await daemon.request('GET', url)).body.personalization
    assert.is(await shown(), true)
    const refused = await daemon.request('PATCH', url, { fallback_agent_enabled: false })
    assert.equal([refused.status, refused.body.code], [409, 'workspace_untrusted'])
    const { digest } = (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust
    await daemon.request('PUT', `/api/workspaces/${id}/trust`, { digest })
    assert.is(await shown(), false)
    assert.is((await daemon.request('GET', '/api/settings/cmd-palette')).body.personalization, true)
    const patched = await daemon.request('PATCH', url, { fallback_agent_enabled: false })
    assert.equal([patched.status, patched.body.fallback_agent_enabled, patched.body.scope], [200, false, 'workspace'])
    const { state } = (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust
    assert.is(state, 'trusted', 'a write of the operator is no foreign change')
    const [entry] = (await daemon.request('GET', '/api/settings/apply')).body.entries
    assert.equal([entry.write_target, entry.status], ['workspace-config', 'applied'])
    await daemon.request('DELETE', `/api/workspaces/${id}/trust`)
    assert.is(await shown(), true)
  } finally {
    await daemon.close()
  }
})

test('a file nested too deeply to be parsed counts by its text', async () => {
  const daemon = await scene()
  try {
    for (const depth of [5000, 200_000]) {
      const text = `{"mcpServers":${'['.repeat(depth)}"./run.sh"${']'.repeat(depth)}}`
      const { id, root } = await daemon.workspace({ '.mcp.json': text, 'run.sh': 'one' })
      await trusted(daemon, id)
      await writeFile(path.join(root, '.mcp.json'), `${text} `)
      assert.is((await trustOf(daemon, id)).state, 'changed', String(depth))
    }
  } finally {
    await daemon.close()
  }
})

test.run()
