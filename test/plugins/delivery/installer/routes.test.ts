import { readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { type CommandContext, definePlugin, kind, operator, type PluginKernel } from '../../../../kernel/plugin.js'
import { runInstall, runUpdate } from '../../../../plugins/delivery/installer/commands.js'
import { daemon, extensions, installer, resources } from '../../../../plugins/index.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { scene as hosted, isActive, textExtension } from '../extensions/scene.js'
import { faultFrom, files } from './scene.js'
import { manifest, tarball } from './tarball.js'

const work = await temporaryFolder('routed')
const svc = await hosted()
const streams = () => svc.kernel.host.store().streams.map(({ owner }) => owner)

test.after(async () => {
  await svc.close()
  await rm(work, { recursive: true })
})

const table = '[{ id: "1", sql: "CREATE TABLE acme_talk_line (id TEXT)" }]'
const talking = (text: string, version: string) => {
  const { 'extension.toml': toml = '', 'main.js': main = '', ...rest } = textExtension('acme.talk', text)
  return {
    ...rest,
    'extension.toml': toml.replace('1.0.0', version),
    'main.js': main
      .replace('.surface({', `.surface({ tables: ${table},`)
      .replace("version: '1.0.0'", `version: '${version}'`),
  }
}

test('without the plugin that loads extensions a request says what does not run', async () => {
  const alone = await boot({ plugins: [installer] })
  for (const [method, url] of [
    ['POST', '/api/extensions'],
    ['DELETE', '/api/extensions/acme.talk'],
  ] as const) {
    const { status, body } = await alone.request(method, url, method === 'POST' ? { path: work } : undefined)
    assert.equal([status, body.code, body.details], [503, 'unavailable', { next: 'svc doctor' }])
    assert.match(body.error, 'the plugin extensions does not run')
  }
  await alone.close()
})

test('a missing folder is named without the words of the system', async () => {
  const { status, body } = await svc.request('POST', '/api/extensions/preview', { path: path.join(work, 'none') })
  assert.equal([status, body.error], [422, `${path.join(work, 'none')} does not exist`])
  assert.is(body.details.next, 'svc extension search none', 'it may be the ID of a catalog entry')
})

test('an extension is installed, enabled at once, updated, stays disabled, and is purged without a trace', async () => {
  const folder = await files(path.join(work, 'talk'), talking('one', '1.0.0'))
  const preview = await svc.request('POST', '/api/extensions/preview', { path: folder })
  assert.is(preview.status, 200)
  assert.equal([preview.body.preview.action, preview.body.preview.decision], ['install', 'local'])
  const done = await svc.request('POST', '/api/extensions', {
    path: folder,
    tree_digest: preview.body.preview.tree_digest,
  })
  assert.equal([done.status, done.body.extension.state], [201, 'active'], JSON.stringify(done.body))
  const answer = async () => (await svc.request('GET', '/api/ext/acme.talk/say')).body
  assert.equal(await answer(), { text: 'one' })
  const again = await svc.request('POST', '/api/extensions', { path: folder })
  assert.equal([again.status, again.body.code], [409, 'extension_installed'])
  assert.is(again.body.details.next, 'svc extension update acme.talk')
  const elsewhere = await files(path.join(work, 'talk-2'), talking('two', '2.0.0'))
  const other = await svc.request('POST', '/api/extensions', { path: elsewhere })
  assert.is(other.body.details.next, 'svc extension remove acme.talk')
  assert.match(other.body.error, /from another source; remove it first/)

  await files(folder, talking('two', '2.0.0'))
  const checked = await svc.request('PUT', '/api/extensions/acme.talk', { check_only: true })
  assert.equal([checked.status, checked.body.update.status], [200, 'available'])
  const updated = await svc.request('PUT', '/api/extensions/acme.talk', {})
  assert.equal([updated.body.update.status, updated.body.update.latest_version], ['updated', '2.0.0'])
  await svc.until('acme.talk', isActive)
  assert.equal(await answer(), { text: 'two' })

  await svc.request('POST', '/api/extensions/acme.talk/disable')
  await files(folder, talking('three', '3.0.0'))
  const batch = await svc.request('POST', '/api/extensions/update', {})
  assert.equal(batch.body.updates, [
    { name: 'acme.talk', status: 'updated', current_version: '2.0.0', latest_version: '3.0.0' },
  ])
  const { body } = await svc.request('GET', '/api/extensions/acme.talk')
  assert.equal([body.extension.state, body.extension.version], ['disabled', '3.0.0'])
  const { provenance } = (await svc.request('GET', '/api/extensions/acme.talk/provenance')).body
  assert.equal([provenance.installed_from, provenance.source_url], ['local_path', folder])
  assert.ok((await svc.request('POST', '/api/extensions/acme.talk/verify')).body.matches)

  await svc.request('POST', '/api/extensions/acme.talk/enable')
  assert.equal(await answer(), { text: 'three' })

  // What does not load is told of where it is updated.
  await files(folder, { ...talking('four', '4.0.0'), 'text.js': 'export const = \n' })
  const lines: string[] = []
  const out = { json: false, line: (text: string) => void lines.push(text), color: (_: string, text: string) => text }
  const request = async (...what: [string, string, unknown?]) => {
    const { status, body } = await svc.request(...what)
    if (status >= 400) throw new Error(body.error)
    return body
  }
  const context = { client: { request }, out, options: {}, args: { name: 'acme.talk' } } as unknown as CommandContext
  const refusal = await faultFrom(Promise.resolve(runUpdate(context)))
  assert.match(refusal.message, /^acme\.talk 4\.0\.0 did not start, 3\.0\.0 stays installed: .*text\.js:1: SyntaxError/)
  assert.not(lines.some(line => line.startsWith('updated')))
  await files(folder, { ...talking('four', '3.0.0'), 'text.js': 'export const = \n' })
  const same = await faultFrom(Promise.resolve(runUpdate(context)))
  assert.match(same.message, /^acme\.talk 3\.0\.0 did not start, the installed files stay: /)
  // A folder of an installed extension is refused: nobody is asked before.
  const terminal = { onLine: () => assert.unreachable('it asks') }
  const asking = { ...context, cwd: '/', terminal, args: { source: elsewhere } } as unknown as CommandContext
  assert.match((await faultFrom(Promise.resolve(runInstall(asking)))).message, /already installed/)
  assert.equal(await answer(), { text: 'three' })
  assert.equal((await svc.request('DELETE', '/api/extensions/acme.talk')).status, 200)
  assert.is((await svc.request('GET', '/api/ext/acme.talk/say')).status, 404)
  assert.ok(streams().includes('acme.talk'), 'its tables stay')
  const purged = await svc.request('DELETE', '/api/extensions/acme.talk?purge=true')
  assert.equal([purged.status, purged.body.extension.status], [200, 'purged'], JSON.stringify(purged.body))
  assert.not.ok(streams().includes('acme.talk'), 'its tables went')
  assert.is((await svc.request('DELETE', '/api/extensions/acme.talk?purge=true')).status, 404, 'nothing is left')
  const install = { ...context, cwd: '/', options: { yes: true }, args: { source: folder } }
  assert.is(await runInstall(install), 1)
  assert.ok(lines.includes('acme.talk 3.0.0 is installed and does not load'), lines.join('\n'))
  assert.is(lines.at(-1), 'next: svc extension logs acme.talk')
  assert.is((await svc.request('DELETE', '/api/extensions/acme.talk?purge=true')).status, 200)
  assert.is((await svc.request('GET', '/api/extensions/acme.talk')).status, 404)
  assert.equal(await readdir(path.join(svc.home, 'extensions')), ['.staging'])
})

test('each refusal has its status, code and reason', async () => {
  const request = async (body: unknown) => {
    const { status, body: reply } = await svc.request('POST', '/api/extensions', body)
    return [status, reply.code]
  }
  assert.equal(await request({ path: 'relative' }), [422, 'extension_source_invalid'])
  assert.equal(await request({ path: '/x', other: 1 }), [400, 'invalid_request'])
  const folder = await files(path.join(work, 'plain'), { 'extension.toml': manifest('plain') })
  assert.equal(await request({ path: folder, checksum: '0'.repeat(64) }), [422, 'extension_archive_digest_mismatch'])
  await files(folder, { 'extension.toml': `colour = 1\n${manifest('plain')}` })
  const wrong = await svc.request('POST', '/api/extensions', { path: folder })
  assert.match(wrong.body.error, /^extension\.toml:\d+: colour: unknown member$/)
  assert.is((await svc.request('PUT', '/api/extensions/nobody', {})).body.code, 'extension_not_installed')
  assert.is((await svc.request('DELETE', '/api/extensions/nobody')).status, 404)
})

const packed = async (name: string, entries: Readonly<Record<string, string>>) => {
  const file = path.join(work, name)
  await writeFile(file, tarball(...Object.entries(entries).map(([at, body]) => ({ path: at, body }))))
  return file
}
const send = (text: string, version: string, more = '') => {
  const sent = talking(text, version)
  return { ...sent, 'main.js': `${more}${sent['main.js']}` }
}

test('the archive of the next version replaces the installed one with its data, and can be rolled back', async () => {
  const first = await packed('acme.talk-1.0.0.tar.gz', send('one', '1.0.0'))
  const second = await packed('acme.talk-2.0.0.tar.gz', send('two', '2.0.0'))
  const broken = await packed('acme.talk-3.0.0.tar.gz', send('three', '3.0.0', 'throw new Error("no")\n'))
  const install = (file: string) => svc.request('POST', '/api/extensions', { path: file })
  const update = (file: string) => svc.request('PUT', '/api/extensions/acme.talk', { path: file })
  const answer = async () => (await svc.request('GET', '/api/ext/acme.talk/say')).body.text
  const source = async () =>
    (await svc.request('GET', '/api/extensions/acme.talk/provenance')).body.provenance.source_url
  assert.equal([(await install(first)).status, await answer()], [201, 'one'])
  const refused = await install(second)
  assert.is(refused.body.details.next, `svc extension update acme.talk --archive ${second}`)
  const { preview } = (await svc.request('POST', '/api/extensions/preview', { path: second })).body
  assert.equal([preview.action, preview.previous_version, preview.version], ['update', '1.0.0', '2.0.0'])
  const done = await update(second)
  assert.equal([done.status, done.body.update?.latest_version, await answer()], [200, '2.0.0', 'two'], done.body.error)
  assert.is(await source(), second, 'an update looks there from now on')

  const failed = await update(broken)
  assert.is(failed.body.code, 'extension_update_failed')
  assert.equal([await answer(), await source()], ['two', second])
  await update(first)
  assert.is(await answer(), 'one', 'an older one that is named is taken')

  // A folder may be another extension of that name, under development.
  const folder = await files(path.join(work, 'talk-3'), talking('four', '4.0.0'))
  assert.is((await update(folder)).body.code, 'extension_not_updatable')
  const other = await packed('other.tar.gz', { 'extension.toml': manifest('other') })
  assert.is((await update(other)).body.code, 'extension_changed_name')
  assert.is((await update(path.join(work, 'none.tar.gz'))).body.code, 'extension_source_invalid')
  await svc.request('POST', '/api/extensions/acme.talk/disable')
  await update(second)
  const { extension } = (await svc.request('GET', '/api/extensions/acme.talk')).body
  assert.equal([extension.state, extension.version], ['disabled', '2.0.0'], 'it stays disabled')
  assert.is((await svc.request('DELETE', '/api/extensions/acme.talk?purge=true')).status, 200)
})

test('a purge deletes the records of the extension, and none of the operator or of a plugin', async () => {
  let own: PluginKernel | undefined
  const keeper = definePlugin({
    name: 'keeper',
    version: '1.0.0',
    service: async () =>
      class {
        constructor(kernel: PluginKernel) {
          own = kernel
        }
      },
  }).surface({ kinds: [kind({ name: 'thing', spec: v.object({}), maxBytes: 1000 })] })
  const world = await hosted({}, { plugins: [daemon, resources, extensions, keeper] })
  const { db, records } = own as unknown as PluginKernel
  const folder = await files(path.join(work, 'records'), { 'extension.toml': manifest('records') })
  assert.is((await world.request('POST', '/api/extensions', { path: folder })).status, 201)
  const sources = [{ kind: 'extension', id: 'records' }, { kind: 'daemon', id: 'records' }, operator.source]
  assert.is((await world.request('DELETE', '/api/extensions/records')).status, 200)
  // Left by a plugin that was not there when the extension was removed.
  await db.tx(t => {
    for (const source of sources)
      records.put(
        t,
        { ...operator, source },
        { kind: 'thing', id: `${source.kind}.${source.id}`, scope: { kind: 'global' }, spec: {} },
      )
  })
  const ids = () => records.list({ kind: 'thing' }).map(({ id }) => id)
  assert.is((await world.request('DELETE', '/api/extensions/records?purge=true')).status, 200)
  assert.equal(ids().sort(), ['daemon.records', `${operator.source.kind}.${operator.source.id}`])
  await world.close()
})

test.run()
