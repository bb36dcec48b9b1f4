import { rm } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Scene, scene } from './scene.js'

const test = suite<{ s: Scene }>('support bundles')
test.before.each(async context => {
  context.s = await scene()
})
test.after.each(async ({ s }) => {
  await s.close()
  await rm(s.home, { recursive: true, force: true })
})

const ARTIFACTS = [
  'manifest.json',
  'summary.md',
  'doctor.json',
  'status.json',
  'providers.json',
  'config-apply-records.json',
  'event-summaries.json',
  'sessions.json',
  'config-redacted.json',
  'logs-tail.txt',
  'versions.json',
  'home-tree.json',
  'liveness.json',
]

test('a bundle has the eleven files, the summary and the liveness, and its manifest says what each is', async ({
  s,
}) => {
  await s.emit({ error: 'no network' })
  const operation = await s.make()
  assert.is(operation.status, 'completed', operation.failure_reason)
  const files = await s.unpack(operation)
  const manifest = s.manifest(files)
  assert.equal(manifest, operation.manifest)
  assert.equal(
    manifest.artifacts.map(({ path }) => path),
    ARTIFACTS,
  )
  for (const { path, included, bytes, omitted_reason: why } of manifest.artifacts) {
    assert.is(files.has(path), included, path)
    if (included) assert.is(Buffer.byteLength(files.get(path) as string), bytes, path)
    else assert.ok(why, path)
  }
  const omitted = manifest.artifacts.filter(({ included }) => !included).map(({ path }) => path)
  assert.equal(omitted, ['providers.json', 'sessions.json'])
  assert.match(files.get('summary.md') as string, /alpha\.failed happened once at .*: no network/)
})

test.run()
