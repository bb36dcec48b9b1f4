// timeout: 120s
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseManifest } from '../../../../plugins/delivery/extensions/api.js'
import { publishTo } from '../../../../plugins/delivery/extensions/authoring/publish.js'
import {
  automation,
  bundles,
  extensions,
  hooks,
  marketplace,
  settings,
  skills,
  tools,
  vault,
} from '../../../../plugins/index.js'
import { openWorld } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { until } from '../../work/tools/scene.js'

/** A process that says in its log what it was granted. */
const MAIN = `
import { createInterface } from 'node:readline'
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const answers = {
    initialize: () => {
      console.error('granted ' + params.capabilities.granted_permissions.join(' '))
      return {
        protocol_version: '1',
        extension_info: { name: params.extension.name, version: params.extension.version },
        accepted_capabilities: { provides: [], permissions: params.capabilities.granted_permissions },
        implemented_methods: ['health_check', 'shutdown'],
      }
    },
    health_check: () => ({ healthy: true }),
    shutdown: () => (setTimeout(() => process.exit(0)), { acknowledged: true }),
  }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]() }))
}).on('close', () => process.exit(0))
`

async function open() {
  const catalog = await temporaryFolder('catalog')
  const world = await openWorld({
    plugins: [automation, bundles, extensions, hooks, marketplace, settings, skills, tools, vault],
    config: { marketplace: { catalog: { base_url: catalog } }, extensions: { trust: { unsandboxed: ['chat'] } } },
  })
  const ask = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
  const source = { source: 'curated', slug: 'chat' }
  const granted = async (): Promise<string[]> => {
    const { logs } = (await ask('GET', '/api/extensions/chat/logs')).body
    return logs.flatMap(({ message }: { message: string }) => /^granted (.*)$/.exec(message)?.[1] ?? [])
  }
  return {
    publish: async (version: string, permissions: readonly string[]) => {
      const folder = await temporaryFolder('chat')
      const text = `name = "chat"\nversion = "${version}"\n[permissions]\nrequires = ${JSON.stringify(permissions)}\n[subprocess]\ncommand = "node"\nargs = ["main.mjs"]\n`
      await mkdir(folder, { recursive: true })
      await writeFile(path.join(folder, 'extension.toml'), text)
      await writeFile(path.join(folder, 'main.mjs'), MAIN)
      await publishTo(catalog, folder, parseManifest(text, 'extension.toml'), {})
      await ask('POST', '/api/marketplace/refresh?kind=extension')
    },
    preview: async (body: object = source) => {
      const reply = await ask('POST', '/api/extensions/preview', body)
      assert.is(reply.status, 200, JSON.stringify(reply.body))
      return reply.body.preview
    },
    install: (consent_digest: string, more: object = {}) =>
      ask('POST', '/api/extensions', { ...source, consent_digest, ...more }),
    update: (more: object = {}) => ask('PUT', '/api/extensions/chat', more),
    ask,
    /** What the n-th process was granted. */
    process: async (n: number) => {
      await until(async () => (await granted()).length >= n, `process ${n}`)
      return (await granted())[n - 1]
    },
    close: () => world.close(),
  }
}

test('a catalog extension sends prompts with consent of the operator, and an update with more asks again', async () => {
  const s = await open()
  try {
    await run(s)
  } finally {
    await s.close()
  }
})

async function run(s: Awaited<ReturnType<typeof open>>): Promise<void> {
  await s.publish('1.0.0', ['sessions/list', 'sessions/prompt', 'tasks/create'])
  const first = await s.preview()
  assert.equal([first.consents_asked, first.consents_given], [['session.write'], []])
  assert.equal(first.permissions_dropped, ['sessions/prompt', 'tasks/create'])
  // Without the consent it is installed all the same, and is not granted that.
  assert.is((await s.install(first.consent_digest)).status, 201)
  assert.is(await s.process(1), 'sessions/list')

  // What it is allowed later takes effect, though its files are the same.
  const allowed = await s.update({ allow: ['session.write'] })
  assert.is(allowed.body.update.status, 'updated', JSON.stringify(allowed.body))
  assert.is(await s.process(2), 'sessions/list sessions/prompt')
  assert.equal((await s.preview({ name: 'chat' })).consents_given, ['session.write'])
  assert.is((await s.update()).body.update.status, 'up_to_date')

  await s.publish('1.1.0', ['sessions/list', 'sessions/prompt', 'bridges/instances/list', 'bridges/messages/ingest'])
  const more = await s.preview({ name: 'chat' })
  assert.equal(more.consents_asked, ['bridge.read', 'bridge.write', 'session.write'])
  assert.equal(more.consents_given, ['session.write'])
  assert.equal(more.permissions_dropped, ['bridges/instances/list', 'bridges/messages/ingest'])
  // What it brings has to be consented to in any case.
  assert.is((await s.update({ allow: ['bridge.write'] })).body.code, 'extension_consent_required')
  const updated = await s.update({ consent_digest: more.consent_digest })
  assert.is(updated.body.update.status, 'updated')
  assert.is(await s.process(3), 'sessions/list sessions/prompt')
  await s.update({ allow: ['bridge.read', 'bridge.write'] })
  assert.is(await s.process(4), 'sessions/list sessions/prompt bridges/instances/list bridges/messages/ingest')

  // No other consent can be given.
  assert.is((await s.update({ allow: ['task.write'] })).status, 400)
}

test.run()
