// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { browse, type OAuthWorld, oauthWorld } from './oauth-world.js'
import { type McpScene, mcpScene } from './scene.js'

const AT = '/api/settings/mcp-servers/guarded'
const guarded = (oauth: OAuthWorld, more: object = {}) => ({ url: oauth.url, auth: { registration: 'auto', ...more } })
const begin = async (scene: McpScene, query = '?scope=global') =>
  (await scene.request('POST', `${AT}/auth/begin${query}`, { mode: 'manual' })).body

/** The address that a browser is led back to after a login was begun. */
async function led(scene: McpScene, query = '?scope=global'): Promise<string> {
  const { authorization_url, callback_url } = await begin(scene, query)
  return browse(authorization_url, callback_url)
}
const exchange = (scene: McpScene, body: object, query = '?scope=global') =>
  scene.request('POST', `${AT}/auth/exchange${query}`, body)
async function login(scene: McpScene, query = '?scope=global'): Promise<void> {
  const { status, body } = await exchange(scene, { redirect_url: await led(scene, query) }, query)
  assert.is(status, 200, JSON.stringify(body))
}
const stored = async (scene: McpScene): Promise<string[]> =>
  (await scene.request('GET', '/api/vault/secrets')).body.secrets.map(({ ref }: { ref: string }) => ref)
const revocations = ({ asked: requests }: OAuthWorld) => requests.filter(one => one.endsWith('/revocation')).length

async function world(work: (scene: McpScene, oauth: OAuthWorld) => Promise<void>, options = {}) {
  const [scene, oauth] = [await mcpScene(), await oauthWorld(options)]
  try {
    await work(scene, oauth)
  } finally {
    await scene.close()
    await oauth.close()
  }
}

test('a removed server loses its secrets and its login, which is revoked', () =>
  world(async (scene, oauth) => {
    await scene.put('guarded', guarded(oauth))
    await login(scene)
    await scene.request('PUT', '/api/settings/mcp-servers/started', {
      server: { name: 'started', command: 'true' },
      secret_values: { secret_env: { TOKEN: 'a-secret-of-the-server' } },
    })
    assert.is((await stored(scene)).length > 2, true)
    for (const name of ['guarded', 'started'])
      assert.is((await scene.request('DELETE', `/api/settings/mcp-servers/${name}`)).status, 200)
    assert.equal(await stored(scene), [])
    assert.is(revocations(oauth), 1)
  }))

test('a server with a changed address loses its login; an unchanged one keeps it', () =>
  world(async (scene, oauth) => {
    await scene.put('guarded', guarded(oauth))
    await login(scene)
    const before = await stored(scene)
    await scene.put('guarded', { ...guarded(oauth), headers: { 'x-one': '1' } })
    assert.equal(await stored(scene), before)
    assert.is(revocations(oauth), 0)
    await scene.put('guarded', { ...guarded(oauth), url: `${oauth.url}/other` })
    assert.equal(await stored(scene), [])
    assert.is(revocations(oauth), 1)
  }))

test('a deleted workspace deletes the logins and secrets of its servers', () =>
  world(async (scene, oauth) => {
    const { id } = await scene.workspace()
    const query = `?scope=workspace&workspace_id=${id}`
    await scene.request('PUT', `/api/settings/mcp-servers/started${query}`, {
      server: { name: 'started', command: 'true' },
      secret_values: { secret_env: { TOKEN: 'a-secret-of-the-server' } },
    })
    await scene.put('guarded', guarded(oauth), query)
    const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
    await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })
    await login(scene, query)
    assert.ok((await stored(scene)).every(ref => ref.startsWith(`vault:mcp/ws/${id}/`)))
    assert.is((await scene.request('DELETE', `/api/workspaces/${id}`)).status < 300, true)
    await eventually(async () => (await stored(scene)).length === 0, 'the end of the secrets')
    assert.is(revocations(oauth), 1)
  }))

test('a logout during a code exchange or token renewal wins: no login remains', () =>
  world(
    async (scene, oauth) => {
      await scene.put('guarded', guarded(oauth))
      const address = await led(scene)
      const exchanged = exchange(scene, { redirect_url: address })
      await oauth.asking('POST /token')
      const [, out] = await Promise.all([exchanged, scene.request('POST', `${AT}/auth/logout?scope=global`, {})])
      assert.equal([out.body.status, await stored(scene)], ['required', []])

      await login(scene)
      const request = oauth.asking('POST /token')
      const listed = scene.tools()
      await request
      const left = await scene.request('POST', `${AT}/auth/logout?scope=global`, {})
      await listed
      assert.equal([left.body.status, await stored(scene)], ['required', []])
      assert.is((await scene.request('GET', `${AT}/auth/status?scope=global`)).body.status, 'required')
    },
    { ttl: 20 },
  ))

test('a login started before a logout is refused', () =>
  world(async (scene, oauth) => {
    await scene.put('guarded', guarded(oauth))
    const address = await led(scene)
    await scene.request('POST', `${AT}/auth/logout?scope=global`, {})
    assert.is((await exchange(scene, { redirect_url: address })).body.code, 'mcp_auth_state_invalid')
  }))

test('an answer without the promised issuer is refused', () =>
  world(async (scene, oauth) => {
    await scene.put('guarded', guarded(oauth))
    const address = new URL(await led(scene))
    assert.ok(address.searchParams.has('iss'))
    address.searchParams.delete('iss')
    const { body } = await exchange(scene, { redirect_url: address.href })
    assert.is(body.code, 'mcp_auth_state_invalid')
    assert.match(body.error, 'promises to do so')
    assert.equal(await stored(scene), [])
  }))

test.run()
