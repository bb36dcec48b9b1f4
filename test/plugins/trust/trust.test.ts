import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { scene } from '../settings/scene.js'

const agent = (name: string, more = '') => `---\nname: ${name}\n${more}---\nYou do what you are told.\n`
const RUNS = agent('runs', "command: 'cat'\n")

test('what a workspace brings along starts only when it is trusted, and a change asks again', async () => {
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

test('hooks, MCP servers and approve-all count as code, a prompt alone does not', async () => {
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

test('an agent that the operator writes through the daemon keeps the trust that there was', async () => {
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

test('a definition of a workspace names no secret of the daemon or of others, even when it is trusted', async () => {
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

test('while the plugin that knows what is trusted does not run, nothing is', async () => {
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

test('settings of a workspace have no effect until it is trusted', async () => {
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

test.run()
