// timeout: 180s
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually } from '../../../fixtures/session-world.js'
import { temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { browse, type OAuthWorld, oauthWorld } from './oauth-world.js'
import { type McpScene, mcpScene } from './scene.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const REVOCATION = 'POST /token/revocation'

/** A daemon whose time stands still but for what a test lets pass, and which can be started again on the same home. */
interface Scene {
  readonly daemon: McpScene
  readonly oauth: OAuthWorld
  readonly home: string
  ask(method: string, url: string, body?: object): ReturnType<McpScene['request']>
  login(name: string, query?: string): Promise<void>
  logout(name: string, query?: string): ReturnType<McpScene['request']>
  refs(): Promise<string[]>
  /** What doctor says of MCP: code, title and the command to run. */
  doctor(): Promise<string[][]>
  pass(ms: number): Promise<void>
  restart(): Promise<void>
}

async function world(work: (scene: Scene) => Promise<void>): Promise<void> {
  const clock = new VirtualClock(Date.now())
  const home = await temporaryFolder('home')
  const oauth = await oauthWorld()
  const start = () => whileTimePasses(clock, mcpScene({ home, clock }))
  let daemon = await start()
  const ask: Scene['ask'] = (method, url, body) => whileTimePasses(clock, daemon.request(method, url, body))
  const auth = (name: string, what: string, query: string) => `/api/settings/mcp-servers/${name}/auth/${what}${query}`
  const scene: Scene = {
    get daemon() {
      return daemon
    },
    oauth,
    home,
    ask,
    async login(name, query = '?scope=global') {
      const { authorization_url, callback_url } = (await ask('POST', auth(name, 'begin', query), { mode: 'manual' }))
        .body
      const redirect_url = await browse(authorization_url, callback_url)
      const { status, body } = await ask('POST', auth(name, 'exchange', query), { redirect_url })
      assert.is(status, 200, JSON.stringify(body))
    },
    logout: (name, query = '?scope=global') => ask('POST', auth(name, 'logout', query), {}),
    refs: async () => (await ask('GET', '/api/vault/secrets')).body.secrets.map(({ ref }: { ref: string }) => ref),
    doctor: async () =>
      (await ask('GET', '/api/doctor?only=mcp')).body.items.map(
        ({ code, title, suggested_command }: Record<string, string>) => [code, title, suggested_command],
      ),
    pass: async ms => {
      // Files that are read, and requests to the authorization server, take real time, in which this one stands still.
      await clock.advance(ms, oauth.settled)
    },
    async restart() {
      await whileTimePasses(clock, daemon.close())
      daemon = await start()
    },
  }
  try {
    await work(scene)
  } finally {
    await whileTimePasses(clock, daemon.close())
    await oauth.close()
    await rm(home, { recursive: true, force: true })
  }
}

const guarded = ({ oauth }: Scene, more: object = {}) => ({ url: oauth.url, auth: { registration: 'auto' }, ...more })
const put = async (scene: Scene, name: string) => {
  const { status, body } = await scene.ask('PUT', `/api/settings/mcp-servers/${name}`, {
    server: { name, ...guarded(scene) },
  })
  assert.is(status, 200, JSON.stringify(body))
}
const revocations = ({ oauth }: Scene) => oauth.asked.filter(one => one === REVOCATION).length
const areOf = (refs: readonly string[], below: string) => refs.length > 0 && refs.every(ref => ref.startsWith(below))

test('a failed revocation is retried after a restart until it succeeds, and doctor reports it until then', () =>
  world(async scene => {
    await put(scene, 'guarded')
    await scene.login('guarded')
    assert.equal(await scene.doctor(), [])
    scene.oauth.fail(REVOCATION, 'refuse')
    assert.is((await scene.ask('DELETE', '/api/settings/mcp-servers/guarded')).status, 200)
    assert.ok(areOf(await scene.refs(), 'vault:mcp/revoke/'), String(await scene.refs()))
    const pending = [
      ['mcp_revocation_pending', 'The login to guarded is not revoked yet', 'svc mcp auth logout guarded'],
    ]
    assert.equal(await scene.doctor(), pending)
    const before = revocations(scene)
    await scene.pass(MINUTE)
    assert.ok(revocations(scene) > before)
    await scene.restart()
    assert.equal(await scene.doctor(), pending)
    const text = JSON.stringify((await scene.ask('GET', '/api/doctor?only=mcp')).body)
    assert.match(text, scene.oauth.issuer)
    assert.match(text, 'answers 503')
    scene.oauth.fail(REVOCATION, undefined)
    await scene.pass(5 * MINUTE)
    await eventually(async () => (await scene.refs()).length === 0, 'the end of the tokens')
    assert.equal(await scene.doctor(), [])
    const after = revocations(scene)
    await scene.pass(DAY)
    assert.is(revocations(scene), after)
  }))

test('a logout of a removed server retries its revocation at once', () =>
  world(async scene => {
    await put(scene, 'guarded')
    await scene.login('guarded')
    scene.oauth.fail(REVOCATION, 'refuse')
    await scene.ask('DELETE', '/api/settings/mcp-servers/guarded')
    const refused = await scene.logout('guarded')
    assert.equal([refused.status, refused.body.code], [503, 'mcp_auth_revocation_failed'])
    assert.is((await scene.logout('another')).body.code, 'mcp_server_not_found')
    scene.oauth.fail(REVOCATION, undefined)
    const done = await scene.logout('guarded')
    assert.equal([done.status, done.body.status, done.body.token_present], [200, 'revoked', false])
    assert.equal([await scene.refs(), await scene.doctor()], [[], []])
    assert.is((await scene.logout('guarded')).body.code, 'mcp_server_not_found')
  }))

test('a login after a failed revocation is not revoked with the previous one', () =>
  world(async scene => {
    await put(scene, 'guarded')
    await scene.login('guarded')
    scene.oauth.fail(REVOCATION, 'refuse')
    assert.is((await scene.logout('guarded')).status, 200)
    await scene.login('guarded')
    const own = (await scene.refs()).filter(ref => ref.startsWith('vault:mcp/global/guarded/'))
    assert.ok(own.length > 0)
    scene.oauth.fail(REVOCATION, undefined)
    await scene.pass(MINUTE)
    await eventually(async () => (await scene.doctor()).length === 0, 'the revocation')
    assert.equal(await scene.refs(), own)
    const { body } = await scene.ask('GET', '/api/settings/mcp-servers/guarded?probe=true')
    assert.equal(body.mcp_server.tools.length, 1)
  }))

test('a revocation that fails for a week is abandoned with its tokens, and a logout drops the item', () =>
  world(async scene => {
    await put(scene, 'guarded')
    await scene.login('guarded')
    scene.oauth.fail(REVOCATION, 'refuse')
    await scene.ask('DELETE', '/api/settings/mcp-servers/guarded')
    for (let day = 0; day < 8; day++) await scene.pass(DAY)
    const count = revocations(scene)
    assert.ok(count > 10 && count <= 40, `${count} attempts`)
    assert.equal(await scene.refs(), [])
    assert.equal(await scene.doctor(), [
      ['mcp_revocation_given_up', 'The login to guarded was not revoked', 'svc mcp auth logout guarded'],
    ])
    await scene.restart()
    await scene.pass(DAY)
    assert.is(revocations(scene), count)
    assert.is((await scene.logout('guarded')).status, 200)
    assert.equal(await scene.doctor(), [])
  }))

test('a server removed from mcp.json by an editor loses its login and secrets after a while', () =>
  world(async scene => {
    const file = path.join(scene.home, 'mcp.json')
    const token = (name: string) => `vault:mcp/global/${name}/env/TOKEN`
    const program = (name: string, ref = token(name)) => ({ [name]: { command: 'true', secret_env: { TOKEN: ref } } })
    const both = { guarded: guarded(scene), 'guarded-two': guarded(scene) }
    const shared = { ...program('two'), ...program('user', token('one')) }
    const write = (servers: object) => writeFile(file, JSON.stringify({ mcpServers: servers }))
    await write({ ...both, ...program('one'), ...program('gone'), ...shared })
    for (const ref of [token('one'), token('two'), token('gone'), 'vault:mcp/global/gone-two/env/TOKEN'])
      await scene.ask('PUT', '/api/vault/secrets', { ref, secret_value: 'a-secret-of-a-server' })
    for (const name of Object.keys(both)) await scene.login(name)
    const all = await scene.refs()
    await scene.pass(10 * MINUTE)

    await writeFile(file, '{ "mcpServers": { "guarded": ')
    await scene.pass(60 * MINUTE)
    assert.equal(await scene.refs(), all, 'a file that cannot be read says nothing')
    await write({ 'guarded-two': guarded(scene), ...shared })
    await scene.pass(4.9 * MINUTE)
    await write({ ...both, ...program('one'), ...program('gone'), ...shared })
    await scene.pass(60 * MINUTE)
    assert.equal(await scene.refs(), all, 'a server that comes back within minutes keeps what it has')

    await write({ 'guarded-two': guarded(scene), ...shared })
    await scene.restart()
    await scene.pass(11 * MINUTE)
    const stays = all.filter(ref => !ref.startsWith('vault:mcp/global/guarded/') && ref !== token('gone'))
    await eventually(async () => (await scene.refs()).length === stays.length, 'the end of the secrets')
    assert.equal(await scene.refs(), stays)
    assert.ok(stays.includes(token('one')), 'another server names it')
    assert.is(scene.oauth.ended.size, 1)
  }))

test('a server missing in a workspace keeps its secrets until its files are trusted', () =>
  world(async scene => {
    const root = await temporaryFolder('root')
    const { id } = (await scene.ask('POST', '/api/workspaces/resolve', { path: root })).body.workspace
    const ref = `vault:mcp/ws/${id}/own/env/TOKEN`
    const file = path.join(root, '.svc', 'mcp.json')
    const write = (servers: object) => writeFile(file, JSON.stringify({ mcpServers: servers }))
    const trust = async () => {
      const { digest } = (await scene.ask('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await scene.ask('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
    }
    await scene.ask('PUT', '/api/vault/secrets', { ref, secret_value: 'a-secret-of-a-server' })
    await mkdir(path.dirname(file), { recursive: true })
    await write({ own: { command: 'true', secret_env: { TOKEN: ref } }, other: { command: 'true' } })
    await trust()
    await scene.ask('GET', `/api/settings/mcp-servers?workspace_id=${id}`)
    await scene.pass(10 * MINUTE)
    await write({ other: { command: 'true' } })
    await scene.pass(60 * MINUTE)
    assert.equal(await scene.refs(), [ref])
    await trust()
    await scene.pass(11 * MINUTE)
    const isGone = async () => {
      await scene.pass(MINUTE)
      return (await scene.refs()).length === 0
    }
    await eventually(isGone, 'the end of the secret')
    await rm(root, { recursive: true })
  }))

test('a server disabled in its file keeps its secrets; one removed from the file does not', () =>
  world(async scene => {
    const ref = 'vault:mcp/global/mine/env/TOKEN'
    const mine = { command: 'true', secret_env: { TOKEN: ref } }
    const save = (mcpServers: object) => writeFile(path.join(scene.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    await save({ mine })
    await scene.ask('PUT', '/api/vault/secrets', { ref, secret_value: 'a-secret-of-a-server' })
    await scene.daemon.tools()
    await save({ mine: { ...mine, disabled: true } })
    await scene.pass(60 * MINUTE)
    assert.equal(await scene.refs(), [ref])
    await save({})
    await scene.pass(11 * MINUTE)
    await eventually(async () => (await scene.refs()).length === 0, 'the end of the secret')
  }))

test('a purged extension deletes the logins of its servers; a disabled or removed one does not', () =>
  world(async scene => {
    const folder = path.join(scene.home, 'extensions', 'helper')
    const install = async (url = scene.oauth.url) => {
      await mkdir(folder, { recursive: true })
      const head = '[extension]\nname = "helper"\nversion = "0.1.0"\ndescription = "Helps"\n'
      await writeFile(path.join(folder, 'extension.toml'), `${head}\n[resources.mcp_servers.brought]\nurl = "${url}"\n`)
      await scene.restart()
      await eventually(
        async () => (await scene.ask('GET', '/api/settings/mcp-servers/brought')).status === 200,
        'the server of the extension',
      )
    }
    await install()
    await scene.login('brought')
    const refs = await scene.refs()
    assert.ok(refs.length > 0)
    const done = async (method: string, url: string) => {
      const { status, body } = await scene.ask(method, url)
      assert.ok(status < 300, JSON.stringify(body))
      await scene.pass(20 * MINUTE)
    }
    await done('POST', '/api/extensions/helper/disable')
    await done('POST', '/api/extensions/helper/enable')
    await done('DELETE', '/api/extensions/helper')
    assert.equal(await scene.refs(), refs)
    await install()
    assert.is(
      (await scene.ask('GET', '/api/settings/mcp-servers/brought/auth/status?scope=global')).body.token_present,
      true,
    )
    await done('DELETE', '/api/extensions/helper?purge=true')
    await eventually(async () => (await scene.refs()).length === 0, 'the end of the tokens')
    assert.is(scene.oauth.ended.size, 1)

    await install()
    await scene.login('brought')
    await install(`${scene.oauth.url}/other`)
    await scene.pass(20 * MINUTE)
    await eventually(async () => (await scene.refs()).length === 0, 'the end of the login to the address before')
  }))

test('a deleted agent deletes the logins of its servers; one with a broken file does not', () =>
  world(async scene => {
    const folder = path.join(scene.home, 'agents', 'helper')
    await mkdir(folder, { recursive: true })
    const agent = (text: string) => writeFile(path.join(folder, 'AGENT.md'), text)
    const valid = '---\nname: helper\ncommand: cat\n---\nYou help.\n'
    await agent(valid)
    const ref = 'vault:mcp/global/beside/env/TOKEN'
    const servers = { beside: { command: 'true', secret_env: { TOKEN: ref } } }
    await writeFile(path.join(folder, 'mcp.json'), JSON.stringify({ mcpServers: servers }))
    await scene.ask('PUT', '/api/vault/secrets', { ref, secret_value: 'a-secret-of-a-server' })
    await scene.daemon.tools({ agentName: 'helper' })
    await agent('---\nname: [\n---\n')
    await scene.pass(60 * MINUTE)
    assert.equal(await scene.refs(), [ref])
    await agent(valid)
    await scene.pass(10 * MINUTE)
    await rm(folder, { recursive: true })
    await scene.pass(11 * MINUTE)
    await eventually(async () => (await scene.refs()).length === 0, 'the end of the secret')
  }))

test.run()
