import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Liveness } from '../../../../cli/daemon/liveness.js'
import { DELAY, HEAP, SLOTS } from '../../../../cli/daemon/watchdog-data.js'
import { readLiveness } from '../../../../plugins/desk/support/bundle/liveness.js'
import { makeOfflineBundle } from '../../../../plugins/desk/support/bundle/offline.js'
import { livenessFile, MOST_LIVENESS_BYTES, olderFile } from '../../../../plugins/desk/support/liveness-file.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { filesOf, type Scene, scene } from './scene.js'

const test = suite<{ s: Scene }>('support bundles without a daemon')
test.before.each(async context => {
  const msg = 'the agent printed cnry-of-the-environment and token=cnry-in-the-text'
  context.s = await scene({ log: `${JSON.stringify({ level: 'error', msg, plugin: 'sessions' })}\n` })
})
test.after.each(({ s }) => rmSync(s.home, { recursive: true, force: true }))

const made = async (home: string, more: object = {}) => {
  const env = { MY_TOKEN: 'cnry-of-the-environment' }
  const signal = new AbortController().signal
  const request = { home, version: '1.2.3', env, includeStatus: true, why: 'no daemon runs', signal, ...more }
  return filesOf((await makeOfflineBundle(request)).archive)
}

/** Names, sizes, modes, times and contents of files. */
const treeOf = (root: string) =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => {
      const file = path.join(entry.parentPath, entry.name)
      const { mode, size, mtimeMs } = statSync(file)
      return [file, mode, size, mtimeMs, readFileSync(file, 'base64')]
    })
    .sort()

test('a stopped home gives the same bundle without its secrets and is not changed', async ({ s }) => {
  await s.emit({ error: 'no network' })
  await s.close()
  const before = treeOf(s.home)
  const files = await made(s.home)
  assert.equal(treeOf(s.home), before)
  const { artifacts } = s.manifest(files)
  assert.equal(
    artifacts.filter(({ included }) => !included).map(({ path: name }) => name),
    // Neither a daemon nor a table of sessions is there.
    ['providers.json', 'sessions.json'],
  )
  assert.match(files.get('event-summaries.json') as string, /no network/)
  assert.match(files.get('summary.md') as string, /alpha\.failed happened once/)
  assert.match(files.get('summary.md') as string, /The log has the error of sessions/)
  assert.is([...files.values()].join('').includes('cnry'), false)
})

test('a bundle is made offline beside a running daemon and for a damaged or missing home', async ({ s }) => {
  await s.emit({ error: 'no network' })
  assert.match((await made(s.home)).get('event-summaries.json') as string, /no network/)
  await s.close()
  writeFileSync(path.join(s.home, 'svc.db'), 'no database')
  const damaged = await made(s.home, { includeStatus: false })
  const reasons = s
    .manifest(damaged)
    .artifacts.flatMap(({ path: name, omitted_reason: why }) => (why ? [[name, why]] : []))
  assert.match(JSON.stringify(reasons), /"sessions.json","the database cannot be opened/)
  assert.match(damaged.get('doctor.json') as string, /store_unreadable/)
  const missing = await made(path.join(s.home, 'nowhere'))
  assert.match(missing.get('doctor.json') as string, /home_path_missing/)
})

test('liveness samples are bounded, contain only numbers, and are in the bundle', async ({ s }) => {
  await s.close()
  const shared = new Int32Array(new SharedArrayBuffer(4 * SLOTS))
  const liveness = new Liveness(s.home, shared)
  for (let second = 0; second < 60; second++) liveness.tick(1000, 0)
  shared[HEAP] = 42
  shared[DELAY] = 1500
  liveness.sample(0)
  liveness.sample(7000)
  const samples = await readLiveness(s.home)
  assert.equal(
    samples.map(({ delay_ms: delay, heap_mb: heap }) => [delay, heap]),
    [...Array(6).fill([0, 0]), [1500, 42], [7000, 42]],
  )
  assert.ok(samples.every(({ rss_mb: rss }) => rss > 0))
  writeFileSync(livenessFile(s.home), `{"t":"2030-01-01T00:00:00Z","delay_ms":5,"text":"cnry"}\nnothing\n`, {
    flag: 'a',
  })
  const parsed = (await readLiveness(s.home)).at(-1)
  assert.equal(parsed as object, { t: '2030-01-01T00:00:00.000Z', delay_ms: 5 })
  assert.match((await made(s.home)).get('summary.md') as string, /was blocked for 7000 ms/)
  for (let n = 0; n < 8000; n++) liveness.sample(0)
  for (const file of [livenessFile(s.home), olderFile(livenessFile(s.home))])
    assert.ok(statSync(file).size < MOST_LIVENESS_BYTES + 2000)
})

test('a home with an unwritable log loses only the samples', async ({ s }) => {
  await s.close()
  const home = await temporaryFolder('support-odd')
  mkdirSync(path.join(home, 'logs', 'liveness.jsonl'), { recursive: true })
  const liveness = new Liveness(home, new Int32Array(new SharedArrayBuffer(4 * SLOTS)))
  for (let second = 0; second < 120; second++) liveness.tick(1000, 0)
  assert.equal(readdirSync(path.join(home, 'logs')), ['liveness.jsonl'])
  rmSync(home, { recursive: true })
})

test.run()
