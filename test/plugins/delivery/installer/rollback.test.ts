import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { systemFiles } from '../../../../plugins/delivery/installer/files.js'
import { daemon, extensions, resources } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { hasFailed, isActive, type Scene, scene, textExtension } from '../extensions/scene.js'
import { files } from './scene.js'

const name = 'acme.talk'
const work = await temporaryFolder('rollback')
test.after(() => rm(work, { recursive: true }))

const talking = (text: string, version: string, body = '') => {
  const { 'extension.toml': toml = '', 'main.js': main = '', ...rest } = textExtension(name, text, body)
  return { ...rest, 'extension.toml': toml.replace('1.0.0', version), 'main.js': main.replace('1.0.0', version) }
}
const broken = (version: string) => {
  const all = talking('broken', version)
  return { ...all, 'main.js': `throw new Error('version ${version} is broken')\n${all['main.js']}` }
}
const answerOf = async (svc: Scene) => (await svc.request('GET', `/api/ext/${name}/say`)).body
const shown = async (svc: Scene) => (await svc.request('GET', `/api/extensions/${name}`)).body.extension

const notices: string[] = []
const listener = definePlugin({
  name: 'listener',
  version: '1.0.0',
  requires: { events: Events },
  service: async () =>
    class {
      constructor(kernel: PluginKernel<{ events: typeof Events }>) {
        kernel.needs.events.on('*', ({ name }) => void notices.push(name))
      }
    } as never,
}).surface({})

/** A home whose extension was installed from a folder as version 1.0.0 and runs. */
async function installed(text: string, home?: string): Promise<{ svc: Scene; folder: string }> {
  const folder = await files(path.join(work, text), talking(text, '1.0.0'))
  const plugins = [daemon, resources, extensions, listener]
  const svc = await scene({}, { plugins, ...(home === undefined ? {} : { home }) })
  const { status, body } = await svc.request('POST', '/api/extensions', { path: folder })
  assert.is(status, 201, JSON.stringify(body))
  await svc.until(name, isActive)
  return { svc, folder }
}

for (const [what, next] of [
  ['throws at import', broken('2.0.0')],
  ['throws at start', talking('two', '2.0.0', "throw new Error('version 2.0.0 is broken')")],
] as const)
  test(`an update to a version that ${what} fails: the previous one stays installed, listed and running`, async () => {
    const { svc, folder } = await installed(`one ${what}`)
    await files(folder, next)
    notices.length = 0
    const { status, body } = await svc.request('PUT', `/api/extensions/${name}`, {})
    assert.equal([status, body.code], [422, 'extension_update_failed'])
    assert.match(body.error, /acme\.talk 2\.0\.0 did not start, 1\.0\.0 stays installed: .*version 2\.0\.0 is broken/)
    const extension = await shown(svc)
    assert.equal([extension.version, extension.state, extension.last_error], ['1.0.0', 'active', undefined])
    assert.equal(await answerOf(svc), { text: `one ${what}` })
    assert.match(await readFile(path.join(svc.home, 'extensions', name, 'extension.toml'), 'utf8'), 'version = "1.0.0"')
    assert.equal(await readdir(path.join(svc.home, 'extensions', '.staging')), [])
    const { provenance } = (await svc.request('GET', `/api/extensions/${name}/provenance`)).body
    assert.ok(provenance.checksum_sha256)
    assert.equal(
      notices.splice(0).filter(event => event.startsWith('extension.update.')),
      ['extension.update.failed'],
    )
    // One that starts is taken.
    await files(folder, talking('three', '3.0.0'))
    assert.is((await svc.request('PUT', `/api/extensions/${name}`, {})).status, 200)
    assert.equal(await answerOf(svc), { text: 'three' })
    await svc.close()
  })

for (const [to, loads] of [
  ['a version that does not start', false],
  ['a version that starts', true],
] as const)
  test(`an interrupted update to ${to} is continued by the next daemon`, async () => {
    const home = await temporaryFolder('killed')
    const { svc, folder } = await installed(`killed ${loads}`, home)
    await files(folder, loads ? talking('two', '2.0.0') : broken('2.0.0'))
    // The disk answers no more once the new files are in place: from then on the daemon does nothing.
    const { syncFolder } = systemFiles
    systemFiles.syncFolder = async target => {
      await syncFolder(target)
      const isIn = await stat(path.join(home, 'extensions', name)).catch(() => undefined)
      const text = isIn && (await readFile(path.join(home, 'extensions', name, 'extension.toml'), 'utf8'))
      if (text?.includes('2.0.0')) throw new Error('killed')
    }
    assert.not((await svc.request('PUT', `/api/extensions/${name}`, {})).status === 200)
    systemFiles.syncFolder = syncFolder
    await svc.kernel.close()
    const again = await scene({}, { home })
    const version = loads ? '2.0.0' : '1.0.0'
    await again.until(name, found => isActive(found) && found.version === version && !hasFailed(found))
    assert.equal(await answerOf(again), { text: loads ? 'two' : 'killed false' })
    const staged = () => readdir(path.join(home, 'extensions', '.staging'))
    await again.until(name, async () => (await staged()).length === 0)
    assert.equal(await staged(), [])
    await again.close()
    await rm(home, { recursive: true })
  })

test('a folder broken by hand: the last good version runs, also after a restart, and both versions are shown', async () => {
  const home = await temporaryFolder('by-hand')
  const svc = await scene({ [name]: talking('one', '1.0.0') }, { home })
  await svc.until(name, isActive)
  await svc.drop(name, broken('2.0.0'))
  await svc.until(name, hasFailed)
  const expected = ['1.0.0', '2.0.0', 'active']
  const state = ({ version, folder_version, state }: Awaited<ReturnType<typeof shown>>) => [
    version,
    folder_version,
    state,
  ]
  assert.equal(state(await shown(svc)), expected)
  await svc.kernel.close()

  const again = await scene({}, { home })
  const extension = await again.until(name, found => isActive(found) && hasFailed(found))
  assert.equal(state(extension), expected)
  assert.match(extension.last_error, /version 2\.0\.0 is broken/)
  assert.equal(await answerOf(again), { text: 'one' })
  const { items } = (await again.request('GET', '/api/doctor')).body
  assert.ok(items.some(({ code }: { code: string }) => code === 'extension_outdated'))
  await again.drop(name, talking('three', '3.0.0'))
  await again.until(name, found => isActive(found) && !hasFailed(found))
  assert.equal(await answerOf(again), { text: 'three' })
  await again.close()
  await rm(home, { recursive: true })
})

test('a manifest changed with equal time, size and inode is reread', async () => {
  const svc = await scene({ plain: { 'extension.toml': 'name = "plain"\nversion = "1.0.0"\n' } })
  const at = path.join(svc.home, 'extensions', 'plain', 'extension.toml')
  const archived = new Date(0)
  await svc.until('plain', isActive)
  await utimes(at, archived, archived)
  // A file that has just changed is not remembered yet.
  await new Promise(resolve => setTimeout(resolve, 2100))
  await svc.request('POST', '/api/extensions/plain/reload', {})
  const handle = await open(at, 'r+')
  await handle.write('name = "plain"\nversion = "2.0.0"\n')
  await handle.close()
  await utimes(at, archived, archived)
  await svc.request('POST', '/api/extensions/plain/reload', {})
  assert.is((await svc.request('GET', '/api/extensions/plain')).body.extension.version, '2.0.0')
  await svc.close()
})

test('purging an extension that does not start removes records of its earlier kinds', async () => {
  const surface = `kinds: [{ name: 'acme.word', spec: v.any(), maxBytes: 1000, onDemand: true }],`
  const all = talking('one', '1.0.0')
  const own = { ...all, 'main.js': String(all['main.js']).replace('routes: [', `${surface}\n  routes: [`) }
  const home = await temporaryFolder('purged')
  const svc = await scene({ [name]: own }, { home })
  await svc.until(name, isActive)
  const put = await svc.request('PUT', '/api/resources/acme.word/one', {
    spec: { any: 1 },
    expected_version: 0,
    scope: { kind: 'global' },
  })
  assert.is(put.status, 201, JSON.stringify(put.body))
  await svc.kernel.close()
  await rm(path.join(home, 'cache'), { recursive: true })
  await files(path.join(home, 'extensions', name), broken('2.0.0'))
  const again = await scene({}, { home })
  await again.until(name, found => found?.state === 'error')
  assert.is((await again.request('DELETE', `/api/extensions/${name}?purge=true`)).status, 200)
  assert.equal((await again.request('GET', '/api/resources/acme.word')).body.records, [])
  await again.close()
  await rm(home, { recursive: true })
})

test('an extension skipped in this run is retried once its code changes, and a reload of the same code fails', async () => {
  const home = await temporaryFolder('left-out')
  const svc = await scene({ [name]: talking('one', '1.0.0') }, { home })
  await svc.until(name, isActive)
  await svc.kernel.close()
  const again = await scene({}, { home, leftOut: [{ name, why: 'it blocked the event loop' }] })
  await again.until(name, found => found?.state === 'registered')
  const reload = () => again.request('POST', `/api/extensions/${name}/reload`, {})
  const { status, body } = await reload()
  assert.equal([status, body.code], [503, 'extension_not_loaded'])
  assert.match(body.error, /acme\.talk was reloaded and does not run: it blocked the event loop/)
  await files(path.join(home, 'extensions', name), talking('repaired', '1.0.1'))
  assert.is((await reload()).status, 200)
  await again.until(name, isActive)
  assert.equal(await answerOf(again), { text: 'repaired' })
  await again.kernel.close()

  // Also code that was repaired while no daemon ran.
  await files(path.join(home, 'extensions', name), talking('again', '1.0.2'))
  const last = await scene({}, { home, leftOut: [{ name, why: 'it blocked the event loop' }] })
  await last.until(name, isActive)
  assert.equal(await answerOf(last), { text: 'again' })
  await last.close()
  await rm(home, { recursive: true })
})

test('a folder replaced within a moment with archive times is noticed', async () => {
  const svc = await scene({ [name]: talking('one', '1.0.0') })
  await svc.until(name, isActive)
  const at = path.join(svc.home, 'extensions', name)
  for (const text of ['two', 'six', 'ten']) {
    const staged = path.join(svc.home, text)
    await mkdir(staged)
    await files(staged, talking(text, '1.0.0'))
    for (const file of await readdir(staged)) await utimes(path.join(staged, file), 0, 0)
    await rm(at, { recursive: true })
    await rename(staged, at)
    await svc.until(name, async () => JSON.stringify(await answerOf(svc)) === JSON.stringify({ text }))
  }
  assert.equal(await answerOf(svc), { text: 'ten' })
  await svc.close()
})

test.run()
