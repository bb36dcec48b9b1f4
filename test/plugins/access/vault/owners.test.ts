// timeout: 120s
import { cp, mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { SecretOwners } from '../../../../plugins/access/vault/api.js'
import { inTree } from '../../../../plugins/index.js'
import { storeSettled, VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually } from '../../../fixtures/session-world.js'
import { boot, temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { type McpScene, mcpScene } from '../../work/mcp/scene.js'

const CLOCK = fileURLToPath(new URL('../../../../examples/extensions/clock-node', import.meta.url))
const SECRET = 'a-secret-of-the-owner'
const BRIDGE = {
  display_name: 'Team',
  platform: 'slack',
  extension_name: 'kit',
  routing_policy: { include_peer: true },
}

const refs = async (scene: McpScene): Promise<string[]> =>
  (await scene.request('GET', '/api/vault/secrets')).body.secrets.map(({ ref }: { ref: string }) => ref)
const store = async (scene: McpScene, ref: string) => {
  const { status, body } = await scene.request('PUT', '/api/vault/secrets', { ref, secret_value: SECRET })
  assert.is(status, 200, `${ref}: ${JSON.stringify(body)}`)
}
const done = async (scene: McpScene, method: string, url: string, body?: object) => {
  const reply = await scene.request(method, url, body)
  assert.ok(reply.status < 300, `${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

interface Made {
  readonly id: string
  /** Secrets of it beside those below the paths that its owner names. */
  readonly more?: readonly string[]
  readonly remove: () => Promise<unknown>
}

/** How each owner of secrets is made, and deleted through the public API. */
const owners: Readonly<Record<string, (scene: McpScene) => Promise<Made>>> = {
  async bridge(scene) {
    const at = '/api/resources/bridge.instance/team'
    await done(scene, 'PUT', at, { scope: { kind: 'global' }, spec: BRIDGE, expected_version: 0 })
    return { id: 'team', remove: () => done(scene, 'DELETE', at, { expected_version: 1 }) }
  },
  async trigger(scene) {
    const { id } = (
      await done(scene, 'POST', '/api/automation/triggers', {
        ...{ name: 'deploys', scope: 'global', agent_name: 'plain', prompt: 'Look.', event: 'webhook' },
        ...{ endpoint_slug: 'deploys', webhook_secret_value: SECRET },
      })
    ).trigger
    return { id, remove: () => done(scene, 'DELETE', `/api/automation/triggers/${id}`) }
  },
  async session(scene) {
    const { id: workspace } = await scene.workspace()
    const { id } = (await done(scene, 'POST', '/api/sessions', { workspace, agent_name: 'plain' })).session
    return { id, remove: () => done(scene, 'DELETE', `/api/workspaces/${workspace}/sessions/${id}`) }
  },
  async provider(scene) {
    const at = '/api/settings/providers/foo'
    await done(scene, 'PUT', at, { settings: { command: 'cat' } })
    return { id: 'foo', remove: () => done(scene, 'DELETE', at) }
  },
  async workspace(scene) {
    const { id } = await scene.workspace()
    const more = [`vault:extensions/clock/ws/${id}/env/KEY`, `vault:mcp/extensions/clock/ws/${id}/one/env/KEY`]
    return { id, more, remove: () => done(scene, 'DELETE', `/api/workspaces/${id}`) }
  },
  async extension(scene) {
    return { id: 'clock-node', remove: () => done(scene, 'DELETE', '/api/extensions/clock-node?purge=true') }
  },
}

/** With an extension and an agent. */
async function opened(options: Parameters<typeof mcpScene>[0] = {}): Promise<McpScene> {
  const home = options.home ?? (await temporaryFolder('home'))
  const agent = path.join(home, 'agents', 'plain')
  await mkdir(agent, { recursive: true })
  await writeFile(path.join(agent, 'AGENT.md'), '---\nname: plain\ncommand: cat\n---\nYou wait.\n')
  await cp(CLOCK, path.join(home, 'extensions/clock-node'), { recursive: true })
  return mcpScene({ ...options, home })
}

test('every owner of secrets named by a plugin is in the table of this test', async () => {
  const scene = await opened()
  try {
    const named = new Set(scene.inside.collect(SecretOwners).map(({ entry }) => entry.what))
    assert.equal([...named].sort(), Object.keys(owners).sort())
  } finally {
    await scene.close()
  }
})

for (const [what, make] of Object.entries(owners))
  test(`a deleted ${what} deletes its secrets and no others`, async () => {
    const scene = await opened()
    try {
      const { id, more = [], remove } = await make(scene)
      const paths = scene.inside
        .collect(SecretOwners)
        .filter(({ entry }) => entry.what === what)
        .flatMap(({ entry }) => entry.paths(id))
      assert.ok(paths.length > 0)
      const own = [...paths.flatMap(at => [`vault:${at}/env/KEY`, `vault:${at}/token`]), ...more]
      const others = [...paths.map(at => `vault:${at}-two/token`), 'vault:mcp/global/shared/token']
      for (const ref of [...own, ...others]) await store(scene, ref)
      await remove()
      const left = await eventually(async () => {
        const found = await refs(scene)
        return !found.some(ref => own.includes(ref)) && found
      }, `the end of the secrets of the ${what}`)
      assert.equal(left, others.sort())
      const reply = (await scene.request('GET', '/api/audit?action=vault.secret_deleted')).body
      assert.not.match(JSON.stringify(reply), SECRET)
    } finally {
      await scene.close()
    }
  })

test('a provider removed from config.json by an editor keeps its secrets for a while', async () => {
  const clock = new VirtualClock()
  const scene = await whileTimePasses(clock, opened({ clock }))
  const config = path.join(scene.home, 'config.json')
  const write = async (providers: object) => {
    await writeFile(config, JSON.stringify({ providers }))
    await whileTimePasses(clock, done(scene, 'POST', '/api/settings/reload'))
  }
  const pass = (ms: number) => clock.advance(ms, storeSettled)
  try {
    await write({ foo: { command: 'cat' }, 'foo-bar': { command: 'cat' } })
    const secrets = ['vault:providers/foo-bar/KEY', 'vault:providers/foo/KEY', 'vault:providers/never/KEY']
    for (const ref of secrets) await whileTimePasses(clock, store(scene, ref))
    await write({ 'foo-bar': { command: 'cat' } })
    await pass(60_000)
    await write({ foo: { command: 'cat' }, 'foo-bar': { command: 'cat' } })
    await pass(600_000)
    assert.equal(await refs(scene), secrets)
    await write({ 'foo-bar': { command: 'cat' } })
    await pass(60_000)
    assert.equal(await refs(scene), secrets)
    await pass(600_000)
    assert.equal(await refs(scene), ['vault:providers/foo-bar/KEY', 'vault:providers/never/KEY'])
  } finally {
    await whileTimePasses(clock, scene.close())
  }
})

test('providers deleted at once all lose their secrets', async () => {
  const scene = await opened()
  try {
    const names = ['one', 'two', 'three', 'four']
    for (const name of names) {
      await done(scene, 'PUT', `/api/settings/providers/${name}`, { settings: { command: 'cat' } })
      await store(scene, `vault:providers/${name}/KEY`)
    }
    await Promise.all(names.map(name => done(scene, 'DELETE', `/api/settings/providers/${name}`)))
    assert.equal(await refs(scene), [])
  } finally {
    await scene.close()
  }
})

test('a built-in provider keeps its secrets when its entry is deleted', async () => {
  const scene = await opened()
  try {
    await done(scene, 'PUT', '/api/settings/providers/claude', { settings: { env_allow: ['LANG'] } })
    await store(scene, 'vault:providers/claude/ANTHROPIC_API_KEY')
    await done(scene, 'DELETE', '/api/settings/providers/claude')
    assert.equal(await refs(scene), ['vault:providers/claude/ANTHROPIC_API_KEY'])
  } finally {
    await scene.close()
  }
})

test('a plugin that names secrets of another deletes none, and does not prevent the deletion of a record', async () => {
  const thief = definePlugin({ name: 'acme.thief', version: '1.0.0' }).surface({
    registries: [
      surfaceOf().contribute(SecretOwners, () => [
        {
          what: 'bridge',
          deleted: { record: 'bridge.instance' },
          paths: () => ['providers/claude', 'extensions/acme.thief/own'],
        },
      ]),
    ],
  })
  const host = await boot({ plugins: [...inTree, thief] })
  const ask = host.request
  try {
    for (const ref of ['vault:extensions/acme.thief/own', 'vault:providers/claude/KEY'])
      assert.is((await ask('PUT', '/api/vault/secrets', { ref, secret_value: SECRET })).status, 200)
    const at = '/api/resources/bridge.instance/team'
    await ask('PUT', at, { scope: { kind: 'global' }, spec: BRIDGE, expected_version: 0 })
    assert.ok((await ask('DELETE', at, { expected_version: 1 })).status < 300)
    const { secrets } = (await ask('GET', '/api/vault/secrets')).body
    assert.equal(
      secrets.map(({ ref }: { ref: string }) => ref),
      ['vault:providers/claude/KEY'],
    )
    assert.ok(host.log.some(({ msg }) => /must not delete/.test(msg)))
  } finally {
    await host.close()
  }
})

test('a secret stays when the deletion of its owner fails', async () => {
  const scene = await opened()
  try {
    await owners.bridge?.(scene)
    await store(scene, 'vault:bridges/team/token')
    const { status } = await scene.request('DELETE', '/api/resources/bridge.instance/team', { expected_version: 7 })
    assert.is(status, 409)
    assert.equal(await refs(scene), ['vault:bridges/team/token'])
    assert.equal((await scene.request('GET', '/api/vault/secrets')).body.secrets[0].present, true)
  } finally {
    await scene.close()
  }
})

test.run()
