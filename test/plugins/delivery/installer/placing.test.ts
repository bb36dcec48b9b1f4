import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemFiles } from '../../../../plugins/delivery/installer/files.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene as hosted, isActive, textExtension } from '../extensions/scene.js'
import { files } from './scene.js'

const work = await temporaryFolder('placing')
const svc = await hosted()
const { rename } = systemFiles

test.after(async () => {
  systemFiles.rename = rename
  await svc.close()
  await rm(work, { recursive: true })
})

const talking = (text: string, version: string) => {
  const { 'extension.toml': toml = '', 'main.js': main = '', ...rest } = textExtension('acme.talk', text)
  return { ...rest, 'extension.toml': toml.replace('1.0.0', version), 'main.js': main.replace('1.0.0', version) }
}

test('an extension stays loaded when it is scanned between the two renames of its update', async () => {
  const folder = await files(path.join(work, 'talk'), talking('one', '1.0.0'))
  const installed = await svc.request('POST', '/api/extensions', { path: folder })
  assert.is(installed.status, 201, JSON.stringify(installed.body))
  await files(folder, talking('two', '2.0.0'))
  const looks: unknown[] = []
  systemFiles.rename = async (from, to) => {
    await rename(from, to)
    if (path.basename(from) !== 'acme.talk') return
    // The old files are gone and the new ones not there yet.
    await svc.request('POST', '/api/extensions/acme.talk/reload', {})
    const { status, body } = await svc.request('GET', '/api/extensions/acme.talk')
    looks.push([status, body.extension?.state])
    looks.push((await svc.request('GET', '/api/ext/acme.talk/say')).body)
  }
  const updated = await svc.request('PUT', '/api/extensions/acme.talk', {})
  systemFiles.rename = rename
  assert.equal([updated.status, updated.body.update?.status], [200, 'updated'], JSON.stringify(updated.body))
  assert.equal(looks, [[200, 'active'], { text: 'one' }])
  await svc.until('acme.talk', isActive)
  assert.equal((await svc.request('GET', '/api/ext/acme.talk/say')).body, { text: 'two' })
})

test.run()
