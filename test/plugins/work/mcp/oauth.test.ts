// timeout: 120s
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { browse, oauthWorld } from './oauth-world.js'
import { type McpScene, mcpScene } from './scene.js'

const at = '/api/settings/mcp-servers/guarded/auth'
const begin = (scene: McpScene) => scene.request('POST', `${at}/begin?scope=global`, { mode: 'manual' })
const exchange = (scene: McpScene, body: object) => scene.request('POST', `${at}/exchange?scope=global`, body)
const status = async (scene: McpScene) => (await scene.request('GET', `${at}/status?scope=global`)).body

/** Logs in as a person does, by the address that the browser ends at. */
async function logIn(scene: McpScene) {
  const { status, body } = await begin(scene)
  assert.is(status, 200, JSON.stringify(body))
  const redirect_url = await browse(body.authorization_url, body.callback_url)
  return { redirect_url, reply: await exchange(scene, { redirect_url }), begun: body }
}

const who = (scene: McpScene) => scene.call('mcp__guarded__who', {})

test('a login discovers, registers, and gives the server its token; the tools are called with it', async () => {
  const [scene, oauth] = [await mcpScene(), await oauthWorld()]
  try {
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } })
    await scene.tools()
    const needed = (await scene.request('GET', '/api/settings/mcp-servers/guarded?probe=true')).body.mcp_server
    assert.equal([needed.runtime_status.reason, needed.auth_status.status], ['mcp_auth_required', 'required'])
    const { reply, redirect_url, begun } = await logIn(scene)
    assert.equal(
      [reply.status, reply.body.status, reply.body.token_present],
      [200, 'authenticated', true],
      JSON.stringify(reply.body),
    )
    assert.is(new URL(begun.authorization_url).searchParams.get('code_challenge_method'), 'S256')
    assert.is((await exchange(scene, { redirect_url })).body.code, 'mcp_auth_state_invalid', 'the state counts once')
    await eventually(async () => (await scene.tools()).length > 0, 'the tools')
    assert.is((await who(scene)).text, 'you are me')
    const [token = ''] = oauth.shown
    const files = await Promise.all(
      ['config.json', 'svc.db'].map(file => readFile(path.join(scene.home, file), 'latin1')),
    )
    assert.not.ok(
      files.some(text => text.includes(token)),
      'the token is in the vault, sealed',
    )
    const out = await scene.request('POST', `${at}/logout?scope=global`)
    assert.equal([out.body.status, out.body.token_present], ['required', false])
    assert.ok(oauth.asked.includes('POST /token/revocation'))
  } finally {
    await scene.close()
    await oauth.close()
  }
})

test('an expired or refused token is renewed; a temporary failure keeps the login', async () => {
  const [scene, oauth] = [await mcpScene(), await oauthWorld({ ttl: 2 })]
  try {
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } })
    await logIn(scene)
    await eventually(async () => (await scene.tools()).length > 0, 'the tools')
    const tokens = () => oauth.asked.filter(one => one === 'POST /token').length
    const before = tokens()
    assert.is((await who(scene)).text, 'you are me')
    assert.ok(tokens() > before || before > 1, 'it was about to expire, and was renewed')
    assert.is((await status(scene)).status, 'authenticated')
    // A server that cannot answer now has taken nothing back: the login counts on.
    oauth.fail('POST /token', 'refuse')
    await new Promise(resolve => setTimeout(resolve, 2100))
    const failed = await who(scene)
    assert.equal([failed.code, failed.reasons], ['tool_unavailable', 'mcp_unreachable'], failed.why)
    assert.match(failed.why ?? '', 'its login cannot be renewed now')
    assert.is((await status(scene)).status, 'authenticated')
    oauth.fail('POST /token', undefined)
    await scene.request('GET', '/api/settings/mcp-servers/guarded?probe=true')
    assert.is((await who(scene)).text, 'you are me')
  } finally {
    await scene.close()
    await oauth.close().catch(() => {})
  }
})

test('a permanently refused refresh token is not sent again; a new login helps', async () => {
  const [scene, oauth] = [await mcpScene(), await oauthWorld({ ttl: 2 })]
  try {
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } })
    await logIn(scene)
    await eventually(async () => (await scene.tools()).length > 0, 'the tools')
    oauth.fail('POST /token', 'revoked')
    await new Promise(resolve => setTimeout(resolve, 2100))
    await who(scene)
    assert.is((await status(scene)).status, 'refresh_failed')
    const tokens = () => oauth.asked.filter(one => one === 'POST /token').length
    const before = tokens()
    for (let n = 0; n < 3; n++) {
      await scene.request('GET', '/api/settings/mcp-servers/guarded?probe=true')
      await who(scene)
    }
    const { status: word, refreshable } = await status(scene)
    assert.equal([tokens() - before, word, refreshable], [0, 'refresh_failed', false])
    oauth.fail('POST /token', undefined)
    assert.is((await logIn(scene)).reply.body.status, 'authenticated')
    await scene.request('GET', '/api/settings/mcp-servers/guarded?probe=true')
    assert.is((await who(scene)).text, 'you are me')
  } finally {
    await scene.close()
    await oauth.close().catch(() => {})
  }
})

test('state, issuer and addresses must match the server of the login', async () => {
  const [scene, oauth] = [await mcpScene(), await oauthWorld()]
  try {
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } })
    const { body } = await begin(scene)
    const led = await browse(body.authorization_url, body.callback_url)
    const other = new URL(led)
    other.searchParams.set('iss', 'https://evil.example')
    const code = async (redirect_url: string) => (await exchange(scene, { redirect_url })).body.code
    assert.is(await code('https://evil.example/?code=1&state=2'), 'mcp_auth_state_invalid')
    assert.is(await code(other.href), 'mcp_auth_state_invalid', 'another issuer')
    assert.is(await code(led), 'mcp_auth_state_invalid', 'the state was used by the attempt')
    const page = await scene.kernel.inject({ method: 'GET', url: `/api/mcp/oauth/callback?state=x&error=<script>` })
    assert.equal([page.status, page.headers['content-type']], [400, 'text/html; charset=utf-8'])
    const bare = await scene.kernel.inject({ method: 'GET', url: '/api/mcp/oauth/callback?code=1' })
    assert.equal([bare.status, bare.headers['content-type']], [400, 'text/html; charset=utf-8'], 'without a state')
    const ahead = (await begin(scene)).body
    const landing = new URL(await browse(ahead.authorization_url, ahead.callback_url))
    const url = landing.pathname + landing.search
    const prefetched = await scene.kernel.inject({ method: 'GET', url, headers: { 'sec-purpose': 'prefetch' } })
    assert.is(prefetched.status, 503, 'a page that is only loaded ahead')
    assert.is((await scene.kernel.inject({ method: 'GET', url })).status, 200, 'the login is still there')
    const again = (await begin(scene)).body
    const refused = await scene.kernel.inject({
      method: 'GET',
      url: `/api/mcp/oauth/callback?state=${again.state}&error=${encodeURIComponent('<script>alert(1)</script>')}`,
    })
    assert.is(refused.status, 400)
    assert.ok(refused.body.includes('&lt;script&gt;') && !refused.body.includes('<script>'), refused.body)
    for (const lie of [
      'http://169.254.169.254',
      'http://10.0.0.1',
      'http://example.org',
      'https://192.168.1.1',
      'ftp://x',
    ]) {
      oauth.lie(lie)
      const { status, body } = await begin(scene)
      assert.ok(
        ['mcp_auth_address_refused', 'mcp_auth_discovery_failed'].includes(body.code),
        `${lie}: ${status} ${body.code}`,
      )
    }
    oauth.lie(undefined)
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto', issuer_url: `${oauth.issuer}/other` } })
    assert.is((await begin(scene)).body.code, 'mcp_auth_discovery_failed', 'metadata of another issuer')
  } finally {
    await scene.close()
    await oauth.close()
  }
})

test('the browser shows a page after the login, and a foreign server of the same name has no token', async () => {
  const [scene, oauth] = [await mcpScene(), await oauthWorld()]
  try {
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } })
    const { body } = await begin(scene)
    const led = new URL(await browse(body.authorization_url, body.callback_url))
    const page = await scene.kernel.inject({ method: 'GET', url: `${led.pathname}${led.search}` })
    assert.is(page.status, 200)
    assert.match(page.body, 'The MCP server guarded can be used now')
    assert.match(String(page.headers['content-security-policy']), "default-src 'none'")
    assert.is((await status(scene)).status, 'authenticated')
    await scene.put('guarded', { url: oauth.url, auth: { registration: 'auto' } }, '?target=sidecar')
    assert.is((await status(scene)).status, 'required', 'the stronger layer inherits nothing')
  } finally {
    await scene.close()
    await oauth.close()
  }
})

test.run()
