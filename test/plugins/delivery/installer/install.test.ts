import { readdir, rename, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault, operator } from '../../../../kernel/plugin.js'
import { mayLeadTo } from '../../../../plugins/delivery/extensions/downloads/download.js'
import { systemFiles } from '../../../../plugins/delivery/installer/files.js'
import { type Intent, phaseOf, type Sight, transitions } from '../../../../plugins/delivery/installer/intents.js'
import type { Provenance } from '../../../../plugins/delivery/installer/provenance.js'
import { sha256 } from '../../../../plugins/delivery/installer/source/tree.js'
import type { StoredEvent } from '../../../../plugins/platform/events/api.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { contents, faultFrom, files, scene } from './scene.js'
import { manifest, tarball } from './tarball.js'

let refusal: Fault | undefined
let policy = true
/** What happens before the disk is next asked to rename to that place, or to sync it. */
let inTheWay: { readonly to: string; readonly happens: () => Promise<void> } | undefined
async function cross(to: string): Promise<void> {
  if (inTheWay?.to !== to) return
  const { happens } = inTheWay
  inTheWay = undefined
  await happens()
}
const placed: string[] = []
const purged: string[] = []
const forgotten: string[] = []
const running = await scene({
  allowUnverified: () => policy,
  disabling: async () => refusal,
  purge: async name => {
    purged.push(name)
  },
  forget: (_, name, purge) => {
    forgotten.push(purge ? `${name}, purged` : name)
  },
  placed: async name => {
    placed.push(name)
  },
  files: {
    ...systemFiles,
    async syncFolder(folder) {
      await cross(folder)
      await systemFiles.syncFolder(folder)
    },
    async rename(from, to) {
      await cross(to)
      await systemFiles.rename(from, to)
    },
  },
})
const { installer, home, holder } = running
const work = await temporaryFolder('sources')
const inside = path.join(home, 'extensions')
const staging = path.join(inside, '.staging')

const events: StoredEvent[] = []
holder.kernel.needs.events.on('*', event => {
  if (event.name.startsWith('extension.')) events.push(event)
})
/** Name and chosen members of the events since the last look. */
async function seen(): Promise<unknown[]> {
  await holder.kernel.db.durable()
  await new Promise(resolve => setTimeout(resolve, 10))
  return events.splice(0).map(({ name, payload }) => [name, payload])
}

const demo = await files(path.join(work, 'demo'), { 'extension.toml': manifest(), 'README.md': 'one' })

test.before.each(() => {
  policy = true
  refusal = undefined
  inTheWay = undefined
})
test.after(async () => {
  await running.close()
  await rm(work, { recursive: true })
})

test('a folder is copied without its history, with its provenance', async () => {
  await files(demo, { '.git/config': 'history', 'docs/a': 'a' })
  const provenance = await installer.install({ path: demo }, operator)
  assert.equal(await contents(path.join(inside, 'demo')), {
    'extension.toml': manifest(),
    'README.md': 'one',
    'docs/a': 'a',
  })
  assert.equal(installer.provenance('demo'), provenance)
  assert.is(provenance.tier, 'user')
  assert.is(provenance.decision, 'local')
  assert.equal(provenance.source, { kind: 'local_path', form: 'folder', path: demo })
  const { name, version, treeDigest: digest } = provenance
  assert.equal(await seen(), [['extension.install.completed', { name, version, digest, installed_from: 'local_path' }]])
  assert.equal(placed.splice(0), ['demo'])
  assert.equal(await readdir(staging), [])
})

test('an existing extension or folder is not overwritten by an install', async () => {
  const fault = await faultFrom(installer.install({ path: demo }, operator))
  assert.is(fault.code, 'extension_installed')
  await files(path.join(inside, 'by-hand'), { 'extension.toml': manifest('by-hand'), mine: 'mine' })
  const other = await files(path.join(work, 'by-hand'), { 'extension.toml': manifest('by-hand') })
  assert.is((await installer.preview({ path: other })).action, 'taken')
  assert.is((await faultFrom(installer.install({ path: other }, operator))).code, 'extension_installed')
  assert.is((await contents(path.join(inside, 'by-hand'))).mine, 'mine')
  assert.is((await faultFrom(installer.update('by-hand', {}, operator))).code, 'extension_not_installed')
  await installer.remove('by-hand', {}, operator)
  assert.not.ok((await readdir(inside)).includes('by-hand'))
  await seen()
})

for (const [when, to] of [
  ['while an extension is staged', staging],
  ['at the last moment', path.join(inside, 'late')],
] as const) {
  test(`a folder created by hand ${when} stays, and the install reports it`, async () => {
    const late = await files(path.join(work, 'late'), { 'extension.toml': manifest('late') })
    const target = path.join(inside, 'late')
    inTheWay = {
      to,
      happens: async () => {
        await files(target, { mine: 'mine' })
      },
    }
    await faultFrom(installer.install({ path: late }, operator))
    assert.equal(await contents(target), { mine: 'mine' })
    assert.is(installer.provenance('late'), undefined)
    assert.equal(await readdir(staging), [])
    await installer.remove('late', {}, operator)
    await seen()
  })
}

test('each step of an intent leads to the phase of the table from every state', () => {
  const steps: Record<string, (sight: Sight) => Sight> = {
    moveAside: sight => ({ ...sight, target: false, aside: true }),
    moveIn: sight => ({ ...sight, fresh: false, target: true }),
    moveBack: sight => ({ ...sight, aside: false, target: true }),
  }
  const remove = { op: 'remove', id: 'x', name: 'x', purge: false } as const
  const place = { op: 'place', id: 'x', name: 'x', provenance: {} as Provenance } as const
  const intents: Intent[] = [remove, { ...place, replaces: true }, { ...place, replaces: false }]
  const reached = new Set<string>()
  for (const intent of intents) {
    for (let bits = 0; bits < 16; bits++) {
      const has = (bit: number) => (bits & bit) > 0
      const sight = { fresh: has(1), target: has(2), aside: has(4), refused: has(8) }
      const phase = phaseOf(intent, sight)
      const { step, next } = transitions[phase]
      reached.add(phase)
      const after = steps[step]
      assert.is(after && phaseOf(intent, after(sight)), next[intent.op], `${intent.op} ${JSON.stringify(sight)}`)
    }
  }
  assert.equal([...reached].sort(), Object.keys(transitions).sort())
})

test('an update takes the current source; a preview shows it first, and its digest binds the update', async () => {
  const more = '[subprocess]\ncommand = "./run"\n[permissions]\nrequires = ["sessions/list"]\n'
  await files(demo, { 'extension.toml': manifest('demo', '2.0.0', more) })
  const before = await contents(path.join(inside, 'demo'))
  const preview = await installer.preview({ path: demo })
  assert.is(preview.action, 'update')
  assert.equal([preview.previous_version, preview.version], ['1.0.0', '2.0.0'])
  assert.equal(
    [preview.permissions_added, preview.permissions_removed, preview.permissions_dropped],
    [['sessions/list'], [], []],
  )
  assert.is((await installer.update('demo', {}, operator, true)).status, 'available')
  assert.equal(await contents(path.join(inside, 'demo')), before)

  await files(demo, { 'README.md': 'changed behind the preview' })
  const fault = await faultFrom(installer.update('demo', { treeDigest: preview.tree_digest }, operator))
  assert.is(fault.code, 'extension_archive_digest_mismatch')
  assert.equal(await contents(path.join(inside, 'demo')), before)
  assert.match(JSON.stringify(await seen()), /^\[\["extension\.update\.failed",\{"name":"demo"/)

  const { status, current } = await installer.update('demo', {}, operator)
  assert.is(status, 'updated')
  assert.is(current.version, '2.0.0')
  assert.is((await contents(path.join(inside, 'demo')))['README.md'], 'changed behind the preview')
  assert.equal(installer.provenance('demo'), current)
  assert.is((await installer.update('demo', {}, operator)).status, 'up_to_date')
  assert.match(
    JSON.stringify(await seen()),
    /^\[\["extension\.update\.completed",.*"previous_version":"1\.0\.0"\}\]\]$/,
  )
})

test('an update to another extension changes nothing', async () => {
  const before = await contents(path.join(inside, 'demo'))
  await files(demo, { 'extension.toml': manifest('other') })
  assert.is((await faultFrom(installer.update('demo', {}, operator))).code, 'extension_changed_name')
  assert.equal(await contents(path.join(inside, 'demo')), before)
  await files(demo, { 'extension.toml': manifest('demo', '3.0.0') })
  await seen()
})

test('a disk that refuses the second rename of an update restores the old files', async () => {
  const before = await contents(path.join(inside, 'demo'))
  inTheWay = {
    to: path.join(inside, 'demo'),
    happens: async () => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    },
  }
  await faultFrom(installer.update('demo', {}, operator))
  assert.equal(await contents(path.join(inside, 'demo')), before)
  assert.is(installer.provenance('demo')?.version, '2.0.0')
  assert.equal(await readdir(staging), [])
  assert.is((await installer.update('demo', {}, operator)).current.version, '3.0.0')
})

test('a batch stops at the first failure and keeps earlier installs', async () => {
  for (const name of ['a-first', 'z-last']) {
    const folder = await files(path.join(work, name), { 'extension.toml': manifest(name) })
    await installer.install({ path: folder }, operator)
    await files(folder, { 'extension.toml': manifest(name, '2.0.0') })
  }
  await rename(demo, `${demo}-away`)
  const items = await installer.updateAll({}, operator)
  assert.equal(
    items.map(({ name, status }) => [name, status]),
    [
      ['a-first', 'updated'],
      ['demo', 'failed'],
    ],
  )
  await rename(`${demo}-away`, demo)
  const versions = installer.installed().map(({ name, version }) => [name, version])
  assert.equal(
    versions,
    [
      ['a-first', '2.0.0'],
      ['z-last', '1.0.0'],
      ['demo', '3.0.0'],
    ].sort(),
  )
})

test('a removal is refused by its dependents; else its folder is deleted, and what it stored only by purge', async () => {
  refusal = new Fault('extension_in_use', 409, 'activation act_1 depends on it')
  assert.is((await faultFrom(installer.remove('demo', {}, operator))).code, 'extension_in_use')
  assert.is(installer.provenance('demo')?.version, '3.0.0')
  refusal = undefined
  forgotten.length = 0
  await installer.remove('demo', {}, operator)
  assert.equal([purged.splice(0), forgotten.splice(0)], [[], ['demo']])
  assert.is(installer.provenance('demo'), undefined)
  assert.is((await faultFrom(installer.remove('demo', {}, operator))).status, 404)
  assert.match((await faultFrom(installer.remove('demo', { purge: true }, operator))).message, 'left no records')
  for (const name of ['..', '.staging', '', 'a/b']) {
    assert.is((await faultFrom(installer.remove(name, {}, operator))).status, 404, name)
  }
  await installer.install({ path: demo }, operator)
  await seen()
  await installer.remove('demo', { purge: true }, operator)
  assert.equal([purged, forgotten], [['demo'], ['demo, purged']])
  assert.equal(await seen(), [['extension.removed', { name: 'demo', purged: true }]])
})

test('a manifest that is invalid or requires a newer svc is refused', async () => {
  const cases: [string, string][] = [
    ['extension_manifest_missing', ''],
    ['extension_manifest_invalid', '[extension]\nname = "x"\nversion = "one"\n'],
    ['extension_manifest_invalid', manifest('system')],
    ['extension_version_unsupported', manifest('x', '1.0.0', 'min_svc_version = "99.0.0"\n')],
  ]
  for (const [code, text] of cases) {
    const folder = await files(await temporaryFolder('bad'), { [text === '' ? 'a' : 'extension.toml']: text })
    const fault = await faultFrom(installer.install({ path: folder }, operator))
    assert.is(fault.code, code, fault.message)
    await rm(folder, { recursive: true })
  }
  assert.equal(await readdir(staging), [])
})

test('an archive from the network needs its digest, or permission by request and policy', async () => {
  const more = '[subprocess]\ncommand = "./run"\n[permissions]\nrequires = ["sessions/list", "tasks/create"]\n'
  const bytes = tarball({ path: 'extension.toml', body: manifest('netted', '1.0.0', more) })
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    if (pathname === '/hop.tar.gz') response.writeHead(302, { location: '/a.tar.gz' }).end()
    else if (pathname === '/loop.tar.gz') response.writeHead(302, { location: '/loop.tar.gz' }).end()
    else if (pathname === '/file.tar.gz') response.writeHead(302, { location: 'file:///etc/passwd' }).end()
    else if (pathname === '/big.tar.gz') response.writeHead(200, { 'content-length': 2 ** 40 }).end()
    else if (pathname === '/gone.tar.gz') response.writeHead(404).end()
    else response.end(bytes)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const at = (name: string) => `http://127.0.0.1:${port}/${name}`
  try {
    for (const [name, code] of [
      ['loop', 'extension_source_unreachable'],
      ['file', 'extension_source_unreachable'],
      ['gone', 'extension_source_unreachable'],
      ['big', 'extension_content_refused'],
      ['hop', 'extension_checksum_unverified'],
    ] as const)
      assert.is((await faultFrom(installer.install({ path: at(`${name}.tar.gz`) }, operator))).code, code, name)
    const preview = await installer.preview({ path: at('hop.tar.gz') })
    assert.is(preview.decision, 'refused')
    assert.equal(preview.permissions_dropped, ['tasks/create'])
    const allowed = await installer.install({ path: at('hop.tar.gz'), allowUnverified: true }, operator)
    assert.equal([allowed.decision, allowed.tier], ['unverified_allowed', 'marketplace'])
    await installer.remove('netted', {}, operator)

    policy = false
    const blocked = await faultFrom(installer.install({ path: at('a.tar.gz'), allowUnverified: true }, operator))
    assert.is(blocked.code, 'extension_unverified_policy_blocked')
    const checksum = sha256(bytes)
    const verified = await installer.install({ path: at('a.tar.gz'), checksum }, operator)
    assert.equal([verified.decision, verified.checksumVerified], ['verified', true])
    await installer.remove('netted', {}, operator)
  } finally {
    server.close()
  }
})

test('a redirect leads only to an address as safe as the first, and to no file', () => {
  const may = (from: string, to: string) => mayLeadTo(new URL(from), new URL(to))
  assert.equal(
    [may('http://a', 'http://a/b'), may('http://a', 'https://b'), may('https://a', 'https://b')],
    [true, true, true],
  )
  assert.equal(
    [
      may('http://a', 'http://b'),
      may('https://a', 'http://a'),
      may('http://a', 'file:///b'),
      may('https://a', 'data:,b'),
    ],
    [false, false, false, false],
  )
})

for (const [what, request] of [
  ['a relative path', { path: 'demo' }],
  ['a missing path', { path: '/nowhere/at/all' }],
  ['a file of another format', { path: '/etc/hostname' }],
  ['an address with a password', { path: 'https://me:hunter2@host/a.tar.gz' }],
  ['an address with a token', { path: 'https://host/a.tar.gz?token=hunter2', source: 'url' }],
  ['another protocol', { path: 'ftp://me:hunter2@host/a.tar.gz', source: 'url' }],
  ['a catalog', { slug: 'demo', source: 'curated' }],
  ['an unknown source', { path: '/tmp', source: 'carrier-pigeon' }],
  ['an empty text', {}],
] as const) {
  test(`${what} is no source, and its secret is not shown`, async () => {
    const fault = await faultFrom(installer.install(request, operator))
    assert.is(fault.code, 'extension_source_invalid', fault.message)
    assert.not.match(JSON.stringify([fault.message, fault.details, await seen()]), /hunter2/)
  })
}

test('concurrent installs run one after the other', async () => {
  const folders = await Promise.all(
    ['x-one', 'x-two'].map(name => files(path.join(work, name), { 'extension.toml': manifest(name) })),
  )
  const results = await Promise.allSettled(
    [...folders, ...folders].map(folder => installer.install({ path: folder }, operator)),
  )
  assert.equal(results.map(({ status }) => status).sort(), ['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  assert.equal(await readdir(staging), [])
})

test.run()
