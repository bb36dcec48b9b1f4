// timeout: 120s
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { isNewer, parseManifest } from '../../../../plugins/delivery/extensions/api.js'
import { publishTo } from '../../../../plugins/delivery/extensions/authoring/publish.js'
import { searchExtensions } from '../../../../plugins/delivery/marketplace/commands.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { openMarketplace } from './scene.js'

/** A catalog in a folder, and an extension that is published there. */
async function open() {
  const world = await openMarketplace()
  const [catalog, root] = [await temporaryFolder('catalog'), await temporaryFolder('extension')]
  const keys = await Promise.all(
    ['one', 'other'].map(async name => {
      const file = path.join(root, `../${path.basename(root)}-${name}.pem`)
      await writeFile(file, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
      return file
    }),
  )
  const publish = async (version: string, key?: string, to = catalog) => {
    const text = `name = "greeter"\nversion = "${version}"\ndescription = "Greets"\n`
    await writeFile(path.join(root, 'extension.toml'), text)
    return publishTo(to, root, parseManifest(text, 'extension.toml'), { key, author: 'Somebody' })
  }
  const feedOf = async () => JSON.parse(await readFile(path.join(catalog, 'extensions.json'), 'utf8'))
  const change = async (how: (entry: Record<string, unknown>) => object) => {
    const { entries } = await feedOf()
    await writeFile(path.join(catalog, 'extensions.json'), JSON.stringify({ version: 1, entries: entries.map(how) }))
    await world.refresh('extension')
  }
  return {
    world,
    catalog,
    keys: keys as [string, string],
    publish,
    feedOf,
    change,
    install: (more: object = {}) =>
      world.kernel.request('POST', '/api/extensions', { source: 'curated', slug: 'greeter', ...more }),
    update: () => world.kernel.request('PUT', '/api/extensions/greeter', {}),
    provenance: async () => (await world.kernel.request('GET', '/api/extensions/greeter')).body.extension?.provenance,
  }
}

test('a published extension is found, installed by id and updated, checked against the catalog checksum', async () => {
  const { world, catalog, keys, publish, feedOf, install, update } = await open()
  const { sha256 } = await publish('1.0.0', keys[0])
  await world.use(catalog)
  const [entry] = (await feedOf()).entries
  assert.equal([entry.id, entry.version, entry.author, entry.digest_sha256], ['greeter', '1.0.0', 'Somebody', sha256])
  const { status, body } = await install()
  assert.is(status, 201, JSON.stringify(body))
  assert.is(body.extension.version, '1.0.0')
  const { provenance } = (await world.kernel.request('GET', '/api/extensions/greeter/provenance')).body
  assert.equal(
    [provenance?.installed_from, provenance?.slug, provenance?.trust.decision, provenance?.archive_digest_sha256],
    ['curated', 'greeter', 'verified', sha256],
  )
  assert.is((await update()).body.update.status, 'up_to_date')
  await publish('1.1.0', keys[0])
  await world.refresh('extension')
  const updated = await update()
  assert.equal(
    [updated.body.update?.status, updated.body.update?.latest_version],
    ['updated', '1.1.0'],
    JSON.stringify(updated.body),
  )
  // A catalog of last year is signed as well.
  await publish('1.0.5', keys[0])
  await world.refresh('extension')
  assert.is((await update()).body.update.status, 'up_to_date')
  assert.is((await world.kernel.request('GET', '/api/extensions/greeter')).body.extension.version, '1.1.0')
  await world[Symbol.asyncDispose]()
})

test('another author, no author and another archive are refused, and the installed version stays', async () => {
  const { world, catalog, keys, publish, change, install, update } = await open()
  await publish('1.0.0', keys[0])
  await world.use(catalog)
  assert.is((await install()).status, 201)
  const refused = async (code: string) => {
    const { status, body } = await update()
    assert.equal([status, body.code], [422, code], JSON.stringify(body))
  }
  const elsewhere = await temporaryFolder('elsewhere')
  await publish('2.0.0', keys[1], elsewhere)
  const [other] = JSON.parse(await readFile(path.join(elsewhere, 'extensions.json'), 'utf8')).entries
  await mkdir(path.join(catalog, 'extensions'), { recursive: true })
  await writeFile(path.join(catalog, other.artifact_url), await readFile(path.join(elsewhere, other.artifact_url)))
  await change(() => other)
  await refused('extension_author_changed')
  const { public_key: _, signature: __, ...unsigned } = other
  await change(() => unsigned)
  await refused('extension_author_changed')
  await publish('1.0.0', undefined, elsewhere).then(
    () => assert.unreachable(),
    ({ code }) => assert.is(code, 'extension_publish_invalid'),
  )
  assert.is((await world.kernel.request('GET', '/api/extensions/greeter')).body.extension.version, '1.0.0')
  // Whoever removes it may take it of somebody else.
  assert.is((await world.kernel.request('DELETE', '/api/extensions/greeter')).status, 200)
  await change(() => ({ ...other, digest_sha256: '0'.repeat(64) }))
  assert.is((await install()).body.code, 'extension_signature_invalid')
  await change(() => ({ ...unsigned, digest_sha256: '0'.repeat(64) }))
  assert.is((await install()).body.code, 'extension_archive_digest_mismatch')
  await change(() => ({ ...unsigned, name: 'other' }))
  assert.is((await install()).body.code, 'extension_catalog_mismatch')
  await change(() => ({ ...unsigned, artifact_url: '../../etc/passwd' }))
  assert.is((await install()).body.code, 'extension_archive_unavailable')
  assert.is((await install({ slug: 'nothing' })).body.code, 'marketplace_entry_not_found')
  assert.is((await install({ slug: '../x' })).body.code, 'extension_source_invalid')
  await world[Symbol.asyncDispose]()
})

test('two entries of one name are refused, whichever is requested', async () => {
  const { world, catalog, keys, publish, feedOf, install } = await open()
  await publish('1.0.0', keys[0])
  await world.use(catalog)
  const [entry] = (await feedOf()).entries
  const { public_key: _, signature: __, ...unsigned } = entry
  const entries = [{ ...unsigned, id: 'aaa', name: 'Greeter' }, entry]
  await writeFile(path.join(catalog, 'extensions.json'), JSON.stringify({ version: 1, entries }))
  const refreshed = await world.refresh('extension')
  assert.match(refreshed.error, /aaa and greeter have the name/)
  for (const slug of ['aaa', 'greeter'])
    assert.is((await install({ slug })).body.code, 'marketplace_entry_ambiguous', slug)
  await world[Symbol.asyncDispose]()
})

test('an update by another author is refused, also after a restart', async () => {
  const { world, catalog, keys, publish, change, install, update } = await open()
  await publish('1.0.0', keys[0])
  await world.use(catalog)
  await world.refresh('extension')
  const elsewhere = await temporaryFolder('elsewhere')
  await publish('1.0.0', keys[1], elsewhere)
  assert.is((await install()).status, 201)
  const [other] = JSON.parse(await readFile(path.join(elsewhere, 'extensions.json'), 'utf8')).entries
  await change(() => ({ ...other, version: '2.0.0' }))
  assert.is((await update()).body.code, 'extension_author_changed')
  // The same rows tell of the installation and of its author, so that nothing is between them.
  await world.kernel.close()
  const again = await openMarketplace(world.home)
  await again.use(catalog)
  assert.is((await again.kernel.request('PUT', '/api/extensions/greeter', {})).body.code, 'extension_author_changed')
  await again[Symbol.asyncDispose]()
})

test('a request digest that differs from the signed one is refused', async () => {
  const { world, catalog, keys, publish, install } = await open()
  await publish('1.0.0', keys[0])
  await world.use(catalog)
  assert.is((await install({ checksum: '0'.repeat(64) })).body.code, 'extension_archive_digest_mismatch')
  await world[Symbol.asyncDispose]()
})

/** Offered and installed versions, and whether the offered one is newer. */
const versions: readonly (readonly [offered: string, installed: string, newer: boolean])[] = [
  ['2.1.0-rc.10', '2.1.0-rc.9', true],
  ['2.1.0', '2.1.0-rc.1', true],
  ['2.1.0-alpha', '2.1.0-rc.1', false],
  ['2.1.0-rc.1', '2.1.0-rc.10', false],
  ['1.0.0+build.2', '1.0.0+build.1', false],
  ['v1.0.0', 'v2.0.0', false],
  ['1.9', '1.10', false],
  ['1.0', '2.0.0', false],
  ['2.0.0', '1.0', false],
  ['latest', '1.0.0', false],
]

for (const [offered, installed, newer] of versions)
  test(`the version ${offered} is ${newer ? '' : 'not '}newer than ${installed}`, () =>
    assert.is(isNewer(offered, installed), newer))

test('an extension is not updated to an earlier pre-release', async () => {
  const { world, catalog, keys, publish, install, update } = await open()
  await publish('2.1.0-rc.10', keys[0])
  await world.use(catalog)
  assert.is((await install()).status, 201)
  for (const version of ['2.1.0-rc.1', '2.1.0-alpha']) {
    await publish(version, keys[0])
    await world.refresh('extension')
    assert.is((await update()).body.update?.status, 'up_to_date', version)
  }
  await publish('2.1.0', keys[0])
  await world.refresh('extension')
  assert.is((await update()).body.update?.status, 'updated')
  await world[Symbol.asyncDispose]()
})

test('a search names the command that installs what it found', async () => {
  const lines: string[] = []
  const items = [{ kind: 'extension', entry_id: 'acme.foo', version: '1.0.0', description: 'x' }]
  await searchExtensions({
    args: {},
    client: { request: async () => ({ kind: 'extension', items, total: 1, stale: false }) },
    out: { json: false, line: (text: string) => lines.push(text), color: (_: string, text: string) => text },
  } as unknown as CommandContext)
  assert.is(lines.at(-1), 'install: svc extension install <id> --from curated')
})

test.run()
