import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { exchange, readBytes } from '../../../../client/exchange.js'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Checks, finding, StatusMembers } from '../../../../plugins/desk/daemon/api.js'
import { hasEnded, transitions } from '../../../../plugins/desk/support/states.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

const test = suite<{ s: Scene }>('support bundles')
test.before.each(async context => {
  context.s = await scene({ listen: ['socket'] })
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

test('a bundle has eleven files with summary and liveness, and its manifest describes each', async ({ s }) => {
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

test('consent is required: without it nothing is created, and the diagnostic has the text to show', async ({ s }) => {
  for (const body of [{}, { yes: false }]) {
    const { status, body: reply } = await s.request('POST', '/api/support/bundles', body)
    assert.equal([status, reply.code, reply.diagnostic.code], [400, ...Array(2).fill('bundle_consent_required')])
  }
  for (const body of [{ yes: 'yes' }, { yes: true, more: 1 }, [], undefined])
    assert.is((await s.request('POST', '/api/support/bundles', body)).status, 400)
  assert.is(existsSync(path.join(s.home, 'support-bundles')), false)
})

test('concurrent bundles are made one after the other; each is downloaded as stored, with mode 0600', async ({ s }) => {
  const begun = await Promise.all([1, 2].map(() => s.request('POST', '/api/support/bundles', { yes: true })))
  const urls = begun.map(({ body }) => body.operation.status_url as string)
  assert.equal(
    begun.map(({ status, body }) => [status, body.operation.status, body.operation.download_url]),
    [
      [202, 'pending', undefined],
      [202, 'pending', undefined],
    ],
  )
  const early = await s.request('GET', `${urls[1]}/download`)
  assert.equal([early.status, early.body.code], [409, 'support_bundle_not_ready'])
  for (const url of urls) {
    const { operation } = (await s.request('GET', `${url}?wait=true`)).body
    assert.is(operation.status, 'completed')
    const file = path.join(s.home, 'support-bundles', operation.file_name)
    assert.equal([statSync(file).mode & 0o777, statSync(file).size], [0o600, operation.size_bytes])
    const reply = await exchange({ socket: s.kernel.home.socket }, { method: 'GET', path: operation.download_url })
    assert.equal([reply.statusCode, reply.headers['content-type']], [200, 'application/gzip'])
    assert.ok((await readBytes(reply)).equals(readFileSync(file)))
  }
  assert.equal((await s.request('GET', '/api/support/bundles/sup_0')).body.code, 'support_bundle_not_found')
  assert.equal((await s.request('GET', '/api/support/bundles/sup_0/download')).status, 404)
})

test('a bundle changes no source: no file, no event, and one audit entry for the request', async ({ s }) => {
  await s.emit({ error: 'no network' })
  await s.make()
  const state = () => ({
    files: treeOf(s.home, name => !/^(?:support-bundles|svc\.db|disk\.reserve)/.test(name)),
    events: s.inside().db.rows('SELECT * FROM kernel_event'),
    tables: Object.fromEntries(tablesOf(s).map(name => [name, s.inside().db.rows(`SELECT count(*) FROM "${name}"`)])),
  })
  const before = state()
  const audit = await s.request('GET', '/api/audit')
  assert.is((await s.make()).status, 'completed')
  const after = state()
  assert.equal(after.files, before.files)
  assert.equal(after.events, before.events)
  assert.equal({ ...after.tables, audit_entry: 0 }, { ...before.tables, audit_entry: 0 })
  const { entries, page } = (await s.request('GET', '/api/audit')).body
  assert.is(page.total, audit.body.page.total + 1)
  assert.match(JSON.stringify(entries[0]), /support/)
})

test('a source that fails is omitted with its reason; status.json is omitted on request', async ({ s }) => {
  await rm(path.join(s.home, 'logs', 'svc.log'))
  await mkdir(path.join(s.home, 'logs', 'svc.log'))
  await writeFile(path.join(s.home, 'config.json'), '{ "token": "cnry-of-a-broken-file", ')
  const operation = await s.make({ yes: true, include_status: false })
  const { artifacts } = s.manifest(await s.unpack(operation))
  const reasons = Object.fromEntries(
    artifacts.flatMap(({ path: name, omitted_reason: why }) => (why ? [[name, why]] : [])),
  )
  assert.equal(Object.keys(reasons), ['status.json', 'providers.json', 'sessions.json', 'logs-tail.txt'].sort(byOrder))
  assert.is(reasons['status.json'], 'include_status is false')
  assert.match(reasons['logs-tail.txt'] as string, /not a regular file/)
  const files = await s.unpack(operation)
  assert.match(files.get('config-redacted.json') as string, /"problem"/)
  assert.is([...files.values()].join('').includes('cnry-of-a-broken-file'), false)
})

const byOrder = (a: string, b: string) => ARTIFACTS.indexOf(a) - ARTIFACTS.indexOf(b)

test('oversized sources are cut and marked: the log keeps its end, the events the newest', async () => {
  const line = (n: number) => `${JSON.stringify({ level: 'info', n, msg: 'x'.repeat(1000) })}\n`
  const s = await scene({ log: Array.from({ length: 2500 }, (_, n) => line(n)).join('') })
  try {
    await s.emit(...Array.from({ length: 40 }, (_, n) => ({ error: `${n} ${'y '.repeat(50_000)}` })))
    const files = await s.unpack(await s.make())
    const about = new Map(s.manifest(files).artifacts.map(artifact => [artifact.path, artifact]))
    const log = files.get('logs-tail.txt') as string
    assert.ok(about.get('logs-tail.txt')?.truncated)
    assert.ok(Buffer.byteLength(log) <= 2 * 1024 * 1024)
    assert.equal([JSON.parse(log.slice(0, log.indexOf('\n'))).n > 0, /"n":2499/.test(log)], [true, true])
    const events = JSON.parse(files.get('event-summaries.json') as string)
    assert.match(events.events[0].summary, /^39 y y/)
    assert.is(about.get('versions.json')?.truncated, false)
  } finally {
    await s.close()
    await rm(s.home, { recursive: true })
  }
})

test('a bundle that cannot be written fails with its reason, and the next one is made', async ({ s }) => {
  await writeFile(path.join(s.home, 'support-bundles'), 'in the way')
  const failed = await s.make()
  assert.equal([failed.status, failed.download_url, failed.completed_at !== null], ['failed', undefined, true])
  assert.match(failed.failure_reason as string, /EEXIST|ENOTDIR/)
  const early = await s.request('GET', `${failed.status_url}/download`)
  assert.equal([early.status, early.body.code], [409, 'support_bundle_not_ready'])
  await rm(path.join(s.home, 'support-bundles'))
  assert.is((await s.make()).status, 'completed')
})

test('archives of this and earlier daemons are removed after a day, and nothing else in their folder', async () => {
  const clock = new VirtualClock(Date.now())
  const home = await temporaryFolder('support-kept')
  const folder = path.join(home, 'support-bundles')
  mkdirSync(folder)
  const old = 'svc-support-20300101T000000Z-sup_0123456789abcdef.tar.gz'
  for (const name of [old, 'mine.tar.gz']) {
    writeFileSync(path.join(folder, name), 'x')
    const at = new Date(clock.now() - 25 * 3_600_000)
    utimesSync(path.join(folder, name), at, at)
  }
  const s = await scene({ home, clock })
  try {
    const gone = async (name: string) => {
      for (let turns = 0; existsSync(path.join(folder, name)) && turns < 6000; turns++)
        await new Promise(resolve => setTimeout(resolve, 5))
      assert.is(existsSync(path.join(folder, name)), false, name)
    }
    await gone(old)
    const operation = await whileTimePasses(clock, s.make())
    const name = operation.file_name as string
    await clock.advance(23 * 3_600_000)
    assert.ok(existsSync(path.join(folder, name)))
    assert.is((await s.request('GET', operation.status_url)).status, 200)
    await clock.advance(2 * 3_600_000)
    await gone(name)
    assert.is((await s.request('GET', operation.status_url)).status, 404)
    assert.equal(readdirSync(folder), ['mine.tar.gz'])
  } finally {
    await s.close()
    await rm(home, { recursive: true })
  }
})

const { contribute } = surfaceOf<object>()

/** A plugin with a bridge in trouble, and with a turn in which nothing happens. */
const troubled = definePlugin({ name: 'troubled', version: '0.0.1', service: async () => class {} }).surface({
  registries: [
    contribute(Checks, () => [
      {
        id: 'bridges',
        category: 'bridges',
        run: async () => [
          finding({
            ...{ id: 'bridges.bri_1', code: 'bridge_degraded', category: 'bridges', severity: 'warning' },
            ...{ title: 'Bridge ops (irc) is degraded', message: 'connection refused' },
          }),
          finding({
            ...{ id: 'bridges.bri_2', code: 'bridge_degraded', category: 'bridges', severity: 'warning' },
            ...{ title: 'Bridge dev', message: 'Bridge dev is gone' },
          }),
        ],
      },
    ]),
    contribute(StatusMembers, () => [
      {
        path: 'health.activities',
        read: async () => [
          { session_id: 'ses_busy', status: 'prompting', idle_seconds: 1, last_activity_kind: 'tool_call' },
          {
            ...{ session_id: 'ses_silent', status: 'prompting', turn_started_at: '2030-01-31T09:00:00.000Z' },
            ...{ idle_seconds: 600, last_activity_kind: 'prompt' },
          },
        ],
      },
    ]),
  ],
})

test('the summary names subjects of findings, causes of failed events, and unresponsive turns', async () => {
  const s = await scene({ more: [troubled] })
  try {
    await s.emit({ error: 'agent lost cannot be run' }, { error: 'agent lost cannot be run' })
    await s.emit({ error: 'the limit of 12 runs is reached' })
    const summary = (await s.unpack(await s.make())).get('summary.md') as string
    assert.match(
      summary,
      /- warning: Bridge ops \(irc\) is degraded: connection refused \(bridges\.bri_1 in doctor\.json\)/,
    )
    assert.match(summary, /- warning: Bridge dev is gone \(/)
    assert.match(summary, /alpha\.failed happened 2 times, the last at .*: agent lost cannot be run/)
    assert.match(summary, /alpha\.failed happened once at .*: the limit of 12 runs is reached/)
    const [, turns = ''] = /## What is under way\n\n([\s\S]*?)\n\n/.exec(summary) ?? []
    assert.equal(turns.split('\n'), [
      '- The session ses_silent is prompting, in a turn since 2030-01-31T09:00:00.000Z, nothing heard for 600 s (last: prompt) (status.json). Try: `svc session health ses_silent`.',
      '- The session ses_busy is prompting, nothing heard for 1 s (last: tool_call) (status.json). Try: `svc session health ses_busy`.',
    ])
  } finally {
    await s.close()
    await rm(s.home, { recursive: true })
  }
})

test('each status has the transitions of the table, and a bundle of a stopped daemon has failed', () => {
  const ended = Object.entries(transitions).filter(([status]) => hasEnded(status as 'failed'))
  assert.equal(ended, [
    ['completed', []],
    ['failed', []],
  ])
})

/** Paths, kinds, sizes, times and contents of what is below a folder. */
function treeOf(root: string, isWanted: (name: string) => boolean): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    const name = path.relative(root, file)
    if (!isWanted(name)) continue
    const { mode, size, mtimeMs } = statSync(file)
    found[name] = entry.isFile() ? [mode, size, mtimeMs, readFileSync(file, 'base64')] : [mode]
  }
  return found
}

const tablesOf = (s: Scene) =>
  s
    .inside()
    .db.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .map(([name]) => `${name}`)

test.run()
