import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  agents,
  daemon,
  extensions,
  providers,
  resources,
  sessions,
  skills,
  tools,
  workspaces,
} from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { hasFailed, isActive, scene, textExtension, type Wire } from './scene.js'

const plugins = [daemon, resources, workspaces, providers, agents, sessions, skills, tools, extensions]
const HASH = 'a'.repeat(64)
const CHILD = path.join(import.meta.dirname, '..', 'subprocess-host', 'child.mjs')
const agent = (name: string) => `---\nname: ${name}\n---\nYou are ${name}.\n`

const write = async (folder: string, files: Readonly<Record<string, string>>) => {
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text)
}

test('a linked build runs beside the installed one, is watched, and keeps its last good generation', async () => {
  const home = await temporaryFolder('extensions')
  const origin = await temporaryFolder('build')
  const svc = await scene({}, { home, plugins })
  const link = (more: object = {}, query = '') =>
    svc.request('POST', `/api/extensions/dev${query}`, { origin_path: origin, generation_hash: HASH, ...more })
  const say = async (from = svc) => (await from.request('GET', '/api/ext/acme.dev/say')).body.text
  const one = async (from = svc) => (await from.request('GET', '/api/extensions/acme.dev')).body.extension

  // What cannot be linked is refused, and nothing of it stays.
  assert.is((await link({ origin_path: 'here' })).body.code, 'extension_dev_invalid')
  assert.is((await link({ origin_path: path.join(origin, 'gone') })).body.code, 'extension_dev_invalid')
  assert.is((await link()).body.code, 'extension_manifest_missing')
  await write(origin, { ...textExtension('acme.dev', 'one'), 'text.js': 'export const = \n' })
  assert.is((await link()).status, 422)
  assert.equal((await svc.request('GET', '/api/extensions')).body.extensions, [])
  await write(origin, { 'text.js': 'export const text = "one"\n' })
  assert.is((await link({}, '?workspace=nowhere')).body.code, 'workspace_not_found')

  const root = await temporaryFolder('place')
  const { id } = (await svc.request('POST', '/api/workspaces', { root_dir: root, name: 'place' })).body.workspace
  const made = await link({}, '?workspace=place')
  assert.is(made.status, 201, JSON.stringify(made.body))
  const { dev, origin_path, workspace_id, overrides_published, digest_matched } = made.body.extension
  assert.equal([dev, origin_path, workspace_id, overrides_published, digest_matched], [true, origin, id, false, false])
  assert.is(await say(), 'one')
  assert.is((await link()).body.code, 'extension_dev_taken', 'its code runs already')

  // Nobody follows it until somebody waits for its log to go on.
  const notes = async () => (await one()).diagnostics.map(({ code }: Wire) => code)
  assert.equal(await notes(), ['extension_linked'])
  const { logs, stream_epoch } = (await svc.request('GET', '/api/extensions/acme.dev/logs')).body
  const query = `follow=true&after=${logs.at(-1).sequence}&stream_epoch=${stream_epoch}`
  const follow = svc.request('GET', `/api/extensions/acme.dev/logs?${query}`)
  assert.equal(await notes(), [])

  // Its folder is watched; what does not load leaves what runs.
  await write(origin, { 'text.js': 'export const text = "two"\n' })
  await svc.until('acme.dev', async () => (await say()) === 'two')
  assert.ok((await follow).body.logs.length > 0)
  const since = await svc.request('GET', `/api/extensions/acme.dev/logs?after=${logs.at(-1).sequence}`)
  // A file may be read while it is written, and then tells of that first.
  assert.match(since.body.logs.map(({ message }: Wire) => message).join('\n'), 'loaded again')
  await write(origin, { 'text.js': 'export const = \n' })
  const outdated = await svc.until('acme.dev', found => found?.last_error !== undefined)
  assert.is(outdated.state, 'active')
  assert.is(await say(), 'two')
  const again = await svc.request('POST', '/api/extensions/acme.dev/reload', {})
  assert.equal([again.status, again.body.extension.failure_code], [200, 'activation_failed'])
  const stale = await svc.request('POST', '/api/extensions/acme.dev/reload', { generation_hash: HASH })
  assert.is(stale.body.code, 'extension_generation_stale')
  await write(origin, { 'text.js': 'export const text = "three"\n' })
  const reloaded = await svc.request('POST', '/api/extensions/acme.dev/reload', {})
  assert.is(reloaded.body.extension.failure_code, undefined)
  assert.is(await say(), 'three')

  // Switched off it stays linked.
  await svc.request('POST', '/api/extensions/acme.dev/disable')
  assert.is((await one()).state, 'disabled')
  await svc.close()
  const next = await scene({}, { home, plugins })
  assert.is((await next.until('acme.dev', found => found !== undefined)).state, 'disabled')
  const on = await next.request('POST', '/api/extensions/acme.dev/enable')
  assert.equal([on.status, on.body.extension.last_error], [200, undefined])
  assert.is(await say(next), 'three')

  // Code is in the daemon once: what comes into the folder of extensions has it, and when it is off the link has it again.
  const place = '?workspace=place'
  const linkOf = async () => (await next.request('GET', `/api/extensions/acme.dev${place}`)).body.extension
  await next.drop('acme.dev', textExtension('acme.dev', 'published'), true)
  await next.until('acme.dev', async () => (await say(next)) === 'published')
  const aside = await linkOf()
  assert.is(aside.state, 'error')
  assert.match(
    aside.last_error,
    /code in the daemon of acme\.dev can exist only once, and the installed acme\.dev already has it/,
  )
  const body = { origin_path: origin, generation_hash: HASH }
  const refused = await next.request('POST', '/api/extensions/dev', body)
  assert.equal([refused.status, refused.body.code], [409, 'extension_dev_taken'])
  await next.request('POST', '/api/extensions/acme.dev/disable')
  assert.is((await linkOf()).state, 'active')
  assert.is(await say(next), 'three')
  assert.is((await one(next)).source, 'user')
  await next.request('POST', '/api/extensions/acme.dev/enable')
  assert.is(await say(next), 'published')
  const purge = await next.request('DELETE', '/api/extensions/acme.dev?purge=true')
  assert.equal([purge.status, purge.body.code], [409, 'extension_in_use'])

  // Removed it is forgotten, and its folder and what is installed stay.
  const removed = await next.request('DELETE', `/api/extensions/acme.dev${place}`)
  assert.equal(removed.body.extension, { name: 'acme.dev', path: origin, status: 'unlinked' })
  assert.is((await next.request('GET', `/api/extensions/acme.dev${place}`)).status, 404)
  assert.is(await say(next), 'published')
  assert.match(await readFile(path.join(origin, 'text.js'), 'utf8'), /three/)
  await next.close()
  for (const folder of [home, origin, root]) await rm(folder, { recursive: true })
})

test('a network extension is linked only when confirmed', async () => {
  const home = await temporaryFolder('extensions')
  const origin = await temporaryFolder('build')
  const svc = await scene({}, { home, plugins })
  const net = (scopes: string) =>
    `name = "net"\nversion = "1.0.0"\n[network_participation]\nrequired = true\nmode = "live"\nchannel_scopes = [${scopes}]\n`
  await write(origin, { 'extension.toml': net('"a"') })
  const link = (confirm_network_digest?: string) =>
    svc.request('POST', '/api/extensions/dev', { origin_path: origin, generation_hash: HASH, confirm_network_digest })
  const reply = await link()
  assert.equal([reply.status, reply.body.code], [409, 'extension_network_unconfirmed'])
  assert.is((await link(HASH)).status, 409)
  const digest = reply.body.details.confirm_network_digest
  assert.is((await link(digest)).body.extension.network_requirement_digest, digest)
  const reload = (body: object) => svc.request('POST', '/api/extensions/net/reload', body)
  assert.is((await reload({})).status, 200, 'it requires what it did')
  await write(origin, { 'extension.toml': net('"a", "b"') })
  await svc.until('net', found => /takes part in the network/.test(found?.last_error))
  assert.is((await svc.request('GET', '/api/extensions/net')).body.extension.state, 'active', 'nobody agreed to more')
  const more = await reload({})
  assert.is(more.body.code, 'extension_network_unconfirmed')
  const agreed = more.body.details.confirm_network_digest
  assert.is(more.body.details.next, `svc extension reload net --workspace '*' --confirm-network-digest ${agreed}`)
  assert.is((await reload({ confirm_network_digest: agreed })).status, 200)
  await svc.close()

  // The next daemon takes as agreed what was, and nothing that came while none ran.
  const next = await scene({}, { home, plugins })
  assert.is((await next.until('net', found => found !== undefined && found.state !== 'enabled')).state, 'active')
  await next.close()
  await write(origin, { 'extension.toml': net('"a", "b", "c"') })
  const last = await scene({}, { home, plugins })
  const waits = await last.until('net', hasFailed)
  assert.equal([waits.state, waits.diagnostics[0].code], ['error', 'extension_network_unconfirmed'])
  assert.match(waits.diagnostics[0].suggested_command, /^svc extension reload net --workspace '\*' --confirm-network-d/)
  const asked3 = await last.request('POST', '/api/extensions/net/reload', {})
  const { confirm_network_digest } = asked3.body.details
  const taken = await last.request('POST', '/api/extensions/net/reload', { confirm_network_digest })
  assert.equal([taken.status, taken.body.extension.state], [200, 'active'])
  await last.close()
  for (const folder of [home, origin]) await rm(folder, { recursive: true })
})

test('preview shows additions of enabling and conflicting agents; a process has commands, secrets and logs', async () => {
  const home = await temporaryFolder('extensions')
  const manifest = `name = "proc"
version = "1.0.0"
requires_env = ["NOT_THERE"]
[resources]
agents = ["agents"]
[subprocess]
command = "node"
args = ["main.mjs", "{}"]
[subprocess.secret_env]
API_TOKEN = "env:NOT_THERE"
[[tools]]
id = "look"
handler = "look"
input_schema = '{"type":"object","properties":{"path_name":{"type":"string"}},"required":["path_name"]}'
[tools.command]
verb = "look"
summary = "Looks"
`
  const main = `import { writeFileSync } from 'node:fs'
writeFileSync('token', process.env.API_TOKEN ?? '')
console.error('the token is', process.env.API_TOKEN)
await import('./child.mjs')
`
  const svc = await scene(
    {
      proc: { 'extension.toml': manifest, 'main.mjs': main, 'agents/planner/AGENT.md': agent('planner') },
    },
    { home, plugins, env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, MY_TOKEN: 'sesame-0123456789' } },
  )
  const root = path.join(home, 'extensions', 'proc')
  await cp(CHILD, path.join(root, 'child.mjs'))
  const get = async (what: string) => (await svc.request('GET', `/api/extensions/${what}`)).body
  await svc.until('proc', found => found?.state === 'registered')
  assert.equal((await get('commands')).commands, [], 'its process does not run')
  await svc.request('POST', '/api/extensions/proc/disable')

  const own = { scope: 'global', agent: { name: 'planner', prompt: 'Plans.' } }
  const created = await svc.request('POST', '/api/agents', own)
  assert.is(created.status, 201, JSON.stringify(created.body))
  const preview = await get('proc/preview')
  assert.equal(preview.agent_conflicts, ['planner'])
  assert.equal([preview.automation_starting, preview.missing_env], [[], ['NOT_THERE']])
  const changes = ({ changes: all }: Wire) => all.map((item: Wire) => `${item.change} ${item.kind} ${item.name}`).sort()
  assert.equal(changes(preview), ['add agent planner', 'add tool ext__proc__look'])

  const put = (bindings: object[]) => svc.request('PUT', '/api/extensions/proc/secrets', { bindings })
  const plain = await put([{ env_name: 'API_TOKEN', value: 'sesame' }])
  assert.equal([plain.status, plain.body.code], [503, 'vault_unavailable'])
  assert.not.match(JSON.stringify(plain.body), /sesame/)
  assert.is((await put([{ env_name: 'OTHER', vault_ref: 'env:MY_TOKEN' }])).body.code, 'extension_env_undeclared')
  assert.is((await put([{ env_name: 'API_TOKEN', vault_ref: 'env:MY_TOKEN' }])).status, 200)
  assert.equal((await get('proc/secrets')).bindings, [{ env_name: 'API_TOKEN', stale: false }])
  await svc.request('POST', '/api/extensions/proc/enable')
  await svc.until('proc', isActive)
  assert.is(await readFile(path.join(root, 'token'), 'utf8'), 'sesame-0123456789')
  assert.equal(changes(await get('proc/preview')), ['unchanged agent planner', 'unchanged tool ext__proc__look'])

  const { logs, stream_epoch } = await get('proc/logs')
  assert.ok(logs.some(({ message }: Wire) => /^the token is/.test(message)))
  assert.not.match(JSON.stringify(logs), /sesame/)
  const after = await get(`proc/logs?after=${logs.at(-1).sequence}&stream_epoch=${stream_epoch}`)
  assert.equal(after.logs, [])
  assert.is((await svc.request('GET', '/api/extensions/proc/logs?after=x')).status, 400)

  const [command] = (await get('commands')).commands
  assert.equal([command.extension, command.verb, command.tool_id], ['proc', 'look', 'ext__proc__look'])
  assert.equal(
    command.flags.map(({ name, required }: Wire) => [name, required]),
    [['path-name', true]],
  )
  assert.is((await svc.request('DELETE', '/api/extensions/proc/secrets/API_TOKEN')).status, 204)
  assert.is((await svc.request('DELETE', '/api/extensions/proc/secrets/API_TOKEN')).status, 404)
  await svc.close()
  await rm(home, { recursive: true })
})

test('plugins.disabled keeps an extension off also without code in the daemon', async () => {
  const skill = '---\nname: brief\ndescription: Helps\n---\nSteps.\n'
  const manifest = `name = "plain"\nversion = "1.0.0"\n[resources]\nskills = ["skills"]\n[subprocess]\ncommand = "node"\n`
  const files = { 'extension.toml': manifest, 'skills/brief/SKILL.md': skill }
  const code = { ...textExtension('acme.held', 'x'), 'text.js': "globalThis.imported = true\nexport const text = ''\n" }
  const svc = await scene(
    { plain: files, 'acme.held': code },
    {
      plugins,
      config: '{ "plugins": { "disabled": ["plain", "none"] } }',
      leftOut: [{ name: 'acme.held', why: 'it blocked the event loop' }],
    },
  )
  const found = await svc.until('plain', one => one?.state === 'registered')
  assert.match(found.health_message, /plugins\.disabled/)
  assert.is(found.pid, undefined)
  assert.equal((await svc.request('GET', '/api/resources/skill')).body.records, [])
  const held = await svc.until('acme.held', one => one?.state === 'registered')
  assert.is(held.health_message, 'it blocked the event loop')
  assert.not.ok('imported' in globalThis, 'its code would hold the daemon again')
  const { items } = (await svc.request('GET', '/api/doctor')).body
  const unknown = items.filter((item: Wire) => item.code === 'config_unknown_plugin')
  assert.equal(
    unknown.map((item: Wire) => item.id),
    ['config.plugins.none'],
    'of plain the setting has an effect',
  )
  await svc.close()
})

test.run()
