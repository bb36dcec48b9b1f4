// timeout: 120s
import { cp, mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { daemon, extensions, resources, vault } from '../../../../plugins/index.js'
import { agentText, openWorld } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, scene } from '../../delivery/extensions/scene.js'

const VALUE = 'a-value-that-nobody-prints'
const CLOCK = fileURLToPath(new URL('../../../../examples/extensions/clock-node', import.meta.url))
const AGENT = fileURLToPath(new URL('../../../fixtures/acp-agent.mjs', import.meta.url))

/** An extension whose process writes the variable TOKEN to a file of its folder and ends. */
const writer = (manifest: string) => ({
  'extension.toml': `${manifest}\n[subprocess]\ncommand = "node"\nargs = ["main.mjs"]\n`,
  'main.mjs': `import { writeFileSync } from 'node:fs'\nwriteFileSync('got', String(process.env.TOKEN))\n`,
})

const plugins = [daemon, resources, extensions, vault]
type Svc = Awaited<ReturnType<typeof scene>>

const put = (svc: Svc, ref: string, secret_value = VALUE) =>
  svc.request('PUT', '/api/vault/secrets', { ref, secret_value })

/** What the process wrote, once it has written something. */
async function got(svc: Svc, name: string): Promise<string> {
  const file = path.join(svc.home, 'extensions', name, 'got')
  for (let left = 3000; left > 0; left--) {
    const text = await readFile(file, 'utf8').catch(() => '')
    if (text) return text
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  throw new Error(`${name} wrote nothing`)
}

const restart = async (svc: Svc, name: string) => {
  for (const verb of ['disable', 'enable']) await svc.request('POST', `/api/extensions/${name}/${verb}`)
}

test('clock-node signs with its key from the vault', async () => {
  const home = await temporaryFolder('extensions')
  await cp(CLOCK, path.join(home, 'extensions/clock-node'), { recursive: true })
  const svc = await scene({}, { home, plugins })
  await svc.until('clock-node', isActive)
  const secrets = async () => (await svc.request('GET', '/api/extensions/clock-node/secrets')).body
  assert.equal((await secrets()).bound_env_keys, [])
  assert.is((await put(svc, 'vault:extensions/clock-node/env/CLOCK_KEY')).status, 200)
  assert.equal((await secrets()).bound_env_keys, ['CLOCK_KEY'])
  await restart(svc, 'clock-node')
  const { pid } = (await svc.until('clock-node', isActive)) ?? {}
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8')
  assert.match(environment, `CLOCK_KEY=${VALUE}`)
  assert.not.match(await readFile(`/proc/${pid}/cmdline`, 'utf8'), VALUE)
  await svc.close()
  await rm(home, { recursive: true })
})

test('a secret of an extension is stored in the vault, reaches its process, and is purged with it', async () => {
  const svc = await scene({ tok: writer('name = "tok"\nversion = "1.0.0"\nrequires_env = ["TOKEN"]') }, { plugins })
  const bind = (binding: object) =>
    svc.request('PUT', '/api/extensions/tok/secrets', { bindings: [{ env_name: 'TOKEN', ...binding }] })
  await svc.until('tok', found => found !== undefined)
  const stored = await bind({ value: VALUE })
  assert.equal([stored.status, stored.body.bindings], [200, [{ env_name: 'TOKEN', stale: false }]])
  const { body } = await svc.request('GET', '/api/vault/secrets')
  assert.equal(
    body.secrets.map(({ ref }: { ref: string }) => ref),
    ['vault:extensions/tok/env/TOKEN'],
  )
  const short = await bind({ value: 'short' })
  assert.equal([short.status, short.body.code], [400, 'vault_value_short'])
  for (const vault_ref of ['vault:extensions/other/env/TOKEN', 'vault:mcp/a/b', 'vault:nothing/a']) {
    const foreign = await bind({ vault_ref })
    assert.equal([foreign.status, foreign.body.code], [400, 'extension_secret_foreign'], vault_ref)
  }
  await svc.request('POST', '/api/extensions/tok/disable')
  await rm(path.join(svc.home, 'extensions/tok/got'), { force: true })
  await svc.request('POST', '/api/extensions/tok/enable')
  assert.is(await got(svc, 'tok'), VALUE)
  await svc.request('DELETE', '/api/vault/secrets?ref=vault:extensions/tok/env/TOKEN')
  const { body: after } = await svc.request('GET', '/api/extensions/tok/secrets')
  assert.equal(after.bindings, [{ env_name: 'TOKEN', stale: true }])
  await put(svc, 'vault:extensions/tok/env/TOKEN')
  await put(svc, 'vault:extensions/tokens/env/TOKEN')
  assert.is((await svc.request('DELETE', '/api/extensions/tok?purge=true')).status, 200)
  const left = (await svc.request('GET', '/api/vault/secrets')).body.secrets
  assert.equal(
    left.map(({ ref }: { ref: string }) => ref),
    ['vault:extensions/tokens/env/TOKEN'],
  )
  await svc.close()
})

test('a manifest with the secret of another extension or server starts no process', async () => {
  const thief = (ref: string) =>
    `${writer(`name = "thief"\nversion = "1.0.0"`)['extension.toml']}[subprocess.secret_env]\nTOKEN = "${ref}"\n`
  for (const ref of ['vault:extensions/victim/env/TOKEN', 'vault:mcp/global/github/env/TOKEN', 'vault:thief/TOKEN']) {
    const svc = await scene({}, { plugins })
    await put(svc, 'vault:extensions/victim/env/TOKEN')
    await put(svc, 'vault:mcp/global/github/env/TOKEN')
    await svc.drop('thief', { ...writer(''), 'extension.toml': thief(ref) }, true)
    const found = await svc.until('thief', one => one?.health === 'unhealthy')
    assert.match(found.health_message, /thief must not use|this is not a secret reference/)
    assert.not.ok(await readFile(path.join(svc.home, 'extensions/thief/got'), 'utf8').catch(() => undefined))
    await svc.close()
  }
})

test('an MCP server of a session gets its secrets; a reference into another workspace omits it', async () => {
  const world = await openWorld({ plugins: [vault] })
  const folder = await realpath(await temporaryFolder('mcp'))
  const file = path.join(folder, 'got')
  const script = path.join(folder, 'server.mjs')
  await writeFile(
    script,
    `import { writeFileSync } from 'node:fs'\nwriteFileSync('${file}', String(process.env.TOKEN))\n`,
  )
  const agent = async (name: string, ref: string) => {
    const at = path.join(world.root, '.svc/agents', name)
    await mkdir(at, { recursive: true })
    const server = `mcp_servers: [{name: git, command: ${process.execPath}, args: [${script}], secret_env: {TOKEN: '${ref}'}}]`
    const head = `name: ${name}\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'\n${server}`
    await writeFile(path.join(at, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  }
  const store = (ref: string) => world.kernel.request('PUT', '/api/vault/secrets', { ref, secret_value: VALUE })
  const own = `vault:mcp/ws/${world.workspaceId}/git/env/TOKEN`
  const refs = { everybody: 'vault:mcp/global/git/env/TOKEN', here: own }
  for (const [name, ref] of Object.entries(refs)) {
    assert.is((await store(ref)).status, 200)
    await agent(name, ref)
    const { at } = await world.session(name)
    const events = await world.prompt(at, 'servers\nline done')
    assert.is(await readFile(file, 'utf8'), VALUE, name)
    assert.not.match(JSON.stringify(events), VALUE)
    await rm(file)
  }
  const foreign = {
    there: 'vault:mcp/ws/ws_0000000000000000/git/env/TOKEN',
    provider: 'vault:providers/claude/ANTHROPIC_API_KEY',
    missing: 'vault:mcp/global/none/env/TOKEN',
  }
  await store(foreign.there)
  await store(foreign.provider)
  for (const [name, ref] of Object.entries(foreign)) {
    await agent(name, ref)
    const { at } = await world.session(name, { prompt: 'servers' })
    await world.until(at, ({ type }) => type === 'error' || type === 'done')
    const why = name === 'missing' ? 'the vault has no such secret' : `must not use ${ref}`
    assert.match(JSON.stringify(await world.events(at)), why)
    assert.not.ok(await readFile(file, 'utf8').catch(() => undefined), name)
  }
  await world.close()
  await rm(folder, { recursive: true })
})

test('a provider secret is a variable of its processes, but no variable that changes the started program', async () => {
  const world = await openWorld({ plugins: [vault] })
  await world.agent('plain')
  const store = (ref: string) => world.kernel.request('PUT', '/api/vault/secrets', { ref, secret_value: VALUE })
  for (const name of ['API_KEY', 'PATH', 'SVC_HOME', 'lower'])
    assert.is((await store(`vault:providers/local/${name}`)).status, 200)
  const { at } = await world.session('plain')
  const text = agentText(
    await world.prompt(at, ['API_KEY', 'PATH', 'SVC_HOME', 'lower'].map(name => `env ${name}`).join('\n')),
  )
  assert.match(text, 'API_KEY=[redacted:vault:providers/local/API_KEY]')
  assert.match(text, `SVC_HOME=${world.home}`)
  assert.match(text, 'lower=undefined')
  assert.not.match(text, 'PATH=[redacted')
  await world.close()
})

test('a credential slot of a provider is a variable of its processes under any secret name', async () => {
  const slots = [
    { name: 'key', required: true, secret_ref: 'vault:providers/mine/api-key', target_env: 'MY_KEY' },
    { name: 'plain', required: true, secret_ref: 'env:HOME', target_env: 'PLAIN' },
    { name: 'absent', required: false, secret_ref: 'vault:providers/mine/none', target_env: 'ABSENT' },
    { name: 'start', required: false, secret_ref: 'vault:providers/mine/api-key', target_env: 'LD_PRELOAD' },
  ]
  const mine = { command: `${process.execPath} ${AGENT}`, credential_slots: slots }
  const world = await openWorld({ plugins: [vault], config: { providers: { mine } } })
  const folder = path.join(world.root, '.svc/agents/plain')
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'AGENT.md'), '---\nname: plain\nprovider: mine\n---\nYou do what you are told.\n')
  const body = { ref: 'vault:providers/mine/api-key', secret_value: VALUE }
  assert.is((await world.kernel.request('PUT', '/api/vault/secrets', body)).status, 200)
  const { at } = await world.session('plain')
  const text = agentText(
    await world.prompt(at, ['MY_KEY', 'PLAIN', 'ABSENT', 'LD_PRELOAD'].map(name => `env ${name}`).join('\n')),
  )
  assert.match(text, 'LD_PRELOAD=undefined')
  assert.match(text, 'MY_KEY=[redacted:vault:providers/mine/api-key]')
  assert.match(text, /PLAIN=(?!undefined)/)
  assert.match(text, 'ABSENT=undefined')
  await world.close()
})

test.run()
