// proof, timeout: 600s
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type StartedDaemon, startDaemon } from '../../../../testing/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { chance as chanceOf } from '../../../proofs/library/chance.js'
import { firstSeed } from '../../../proofs/library/seed.js'
import { browse, oauthWorld } from '../../work/mcp/oauth-world.js'
import { sql } from './world.js'

const KILLS = Number(process.env.KILLS ?? 8)
const MOST_KILLS = 5 * KILLS
const SECRET = 'a-secret-of-the-owner'

const done = async (daemon: StartedDaemon, method: string, url: string, body?: object) => {
  const reply = await daemon.request(method, url, body)
  assert.ok(reply.status < 300, `${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}
const refs = async (daemon: StartedDaemon): Promise<string[]> =>
  (await done(daemon, 'GET', '/api/vault/secrets')).secrets.map(({ ref }: { ref: string }) => ref)

interface Owner {
  readonly secrets: readonly string[]
  readonly at: string
  readonly body?: object
}

/** One owner of each kind, whose secrets are stored. */
async function owners(daemon: StartedDaemon, round: number): Promise<Owner[]> {
  const bridge = `/api/resources/bridge.instance/team${round}`
  const spec = {
    display_name: 'Team',
    platform: 'slack',
    extension_name: 'kit',
    routing_policy: { include_peer: true },
  }
  await done(daemon, 'PUT', bridge, { scope: { kind: 'global' }, spec, expected_version: 0 })
  const provider = `/api/settings/providers/p${round}`
  await done(daemon, 'PUT', provider, { settings: { command: 'cat' } })
  const server = `/api/settings/mcp-servers/s${round}`
  await done(daemon, 'PUT', server, {
    server: { name: `s${round}`, command: 'true' },
    secret_values: { secret_env: { TOKEN: SECRET } },
  })
  const resolve = async () => {
    const root = await temporaryFolder('root')
    return (await done(daemon, 'POST', '/api/workspaces/resolve', { path: root })).workspace.id as string
  }
  const [home, workspace] = [await resolve(), await resolve()]
  const trust = `/api/workspaces/${workspace}/trust`
  const { digest } = (await done(daemon, 'GET', trust)).trust
  await done(daemon, 'PUT', trust, { digest })
  const { id } = (await done(daemon, 'POST', '/api/sessions', { workspace: home, agent_name: 'plain' })).session
  const all: Owner[] = [
    { at: bridge, body: { expected_version: 1 }, secrets: [`vault:bridges/team${round}/token`] },
    { at: provider, secrets: [`vault:providers/p${round}/KEY`] },
    { at: server, secrets: [`vault:mcp/global/s${round}/env/TOKEN`] },
    { at: `/api/workspaces/${home}/sessions/${id}`, secrets: [`vault:sessions/${id}/token`] },
    {
      at: `/api/workspaces/${workspace}`,
      secrets: [`vault:mcp/ws/${workspace}/one/env/KEY`, `vault:hooks/ws/${workspace}/key`],
    },
  ]
  for (const ref of all.flatMap(({ secrets }) => secrets))
    await done(daemon, 'PUT', '/api/vault/secrets', { ref, secret_value: SECRET })
  return all
}

test(`deleted owners of secrets leave none after ${KILLS} kills of the daemon, and other owners keep theirs`, async () => {
  const seed = firstSeed()
  const chance = chanceOf('owners', seed)
  const daemon = await startDaemon()
  try {
    const folder = path.join(daemon.home, 'agents', 'plain')
    await mkdir(folder, { recursive: true })
    await writeFile(path.join(folder, 'AGENT.md'), '---\nname: plain\ncommand: cat\n---\nYou wait.\n')
    let whole = 0
    const hit = { none: 0, some: 0, all: 0 }
    for (let kill = 0; kill < KILLS || (hit.some === 0 && kill < MOST_KILLS); kill++) {
      const all = await owners(daemon, kill)
      const began = performance.now()
      const deleted = Promise.allSettled(all.map(({ at, body }) => daemon.request('DELETE', at, body)))
      // The first round measures how long it takes.
      if (whole === 0) await deleted
      else await new Promise(resolve => setTimeout(resolve, chance() * whole))
      if (whole === 0) whole = performance.now() - began
      await daemon.kill('SIGKILL')
      await deleted
      await daemon.restart()
      const there = await Promise.all(all.map(async ({ at }) => (await daemon.request('GET', at)).status === 200))
      const count = there.filter(Boolean).length
      hit[count === 0 ? 'all' : count === all.length ? 'none' : 'some']++
      const kept = all.flatMap(({ secrets }, at) => (there[at] ? secrets : []))
      const gone = all.flatMap(({ secrets }, at) => (there[at] ? [] : secrets))
      const found = await eventually(
        async () => {
          const now = await refs(daemon)
          return !gone.some(ref => now.includes(ref)) && now
        },
        `the end of ${gone.join(', ')}: seed ${seed}, kill ${kill}`,
      )
      assert.equal(
        kept.filter(ref => !found.includes(ref)),
        [],
        `seed ${seed}, kill ${kill}`,
      )
    }
    const { workspaces } = await done(daemon, 'GET', '/api/workspaces')
    await daemon.kill('SIGTERM')
    const trusted = sql(daemon.home, 'SELECT workspace_id FROM trust_workspace').split('\n').filter(Boolean)
    const known = workspaces.map(({ id }: { id: string }) => id)
    assert.equal(
      trusted.filter(id => !known.includes(id)),
      [],
      'workspaces that are gone are trusted',
    )
    assert.ok(hit.some + hit.all > 0, `no kill came after a deletion: ${JSON.stringify(hit)}`)
  } finally {
    await daemon.stop()
  }
})

test('a login revocation interrupted by a kill is finished after the next start', async () => {
  const [daemon, oauth] = [await startDaemon(), await oauthWorld()]
  const revocation = 'POST /token/revocation'
  try {
    for (const name of ['guarded', 'guarded-two']) {
      const at = `/api/settings/mcp-servers/${name}`
      await done(daemon, 'PUT', at, { server: { name, url: oauth.url, auth: { registration: 'auto' } } })
      const { authorization_url, callback_url } = await done(daemon, 'POST', `${at}/auth/begin?scope=global`, {
        mode: 'manual',
      })
      const redirect_url = await browse(authorization_url, callback_url)
      await done(daemon, 'POST', `${at}/auth/exchange?scope=global`, { redirect_url })
    }
    const other = (await refs(daemon)).filter(ref => ref.startsWith('vault:mcp/global/guarded-two/'))
    oauth.fail(revocation, 'hang')
    const request = oauth.asking(revocation)
    const deleted = daemon.request('DELETE', '/api/settings/mcp-servers/guarded').catch(() => {})
    await request
    await daemon.kill('SIGKILL')
    await deleted
    oauth.fail(revocation, 'refuse')
    await daemon.restart()
    const items = await eventually(async () => {
      const { items } = await done(daemon, 'GET', '/api/doctor?only=mcp')
      return items.length > 0 && items
    }, 'the item of doctor')
    assert.equal(
      items.map(({ code, title }: Record<string, string>) => [code, title]),
      [['mcp_revocation_pending', 'The login to guarded is not revoked yet']],
    )
    assert.equal(
      (await refs(daemon)).filter(ref => ref.startsWith('vault:mcp/global/')),
      other,
    )
    await daemon.kill('SIGKILL')
    oauth.fail(revocation, undefined)
    await daemon.restart()
    const { code, stdout, stderr } = await daemon.cli('mcp', 'auth', 'logout', 'guarded')
    assert.is(code, 0, stderr)
    assert.match(stdout, 'revoked')
    assert.equal(await refs(daemon), other)
    assert.equal((await done(daemon, 'GET', '/api/doctor?only=mcp')).items, [])
  } finally {
    await daemon.stop()
    await oauth.close()
  }
})

test.run()
