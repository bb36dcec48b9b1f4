// proof, timeout: 120s: homes of killed daemons, and damaged ones
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { appendFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandData } from '../../../cli/commands/command-data.js'
import { describeRoutes } from '../../../cli/commands/describe-commands.js'
import { openStore } from '../../../kernel/store/index.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { openJournal } from '../../../plugins/platform/journals/open.js'
import resources from '../../../plugins/platform/resources/index.js'
import { runCli } from '../../cli/fake-daemon.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { body, notes } from '../platform/resource-scene.js'

const module = fileURLToPath(new URL('../../../plugins/desk/daemon/commands.ts', import.meta.url))
const verify = { kind: 'module', path: 'db verify', summary: '', args: [], options: [], module, export: 'run' } as const
const data: CommandData = { version: '0', routes: describeRoutes(daemon.surface.routes ?? []), commands: [verify] }
const svc = (home: string, ...argv: string[]) => runCli(home, argv, { data })

const RECORDS = 150
const JOURNALS = ['events', 'streams/one', 'streams/two']

/** A home with records and journals, and whoever holds it. */
async function running(home: string) {
  const host = await boot({ plugins: [daemon, resources, notes().plugin], home, listen: ['socket'] })
  const put = (id: string) => host.request('PUT', `/api/resources/note/${id}`, body('x'.repeat(800)))
  return { host, put }
}

async function stoppedHome(): Promise<string> {
  const home = await temporaryFolder('db')
  const { host, put } = await running(home)
  for (let i = 0; i < RECORDS; i++) await put(`n${i}`)
  await host.close()
  for (const name of JOURNALS) {
    const journal = await openJournal({ dir: path.join(home, name), segmentBytes: 4096 })
    for (let i = 0; i < 10; i++) {
      journal.append([Buffer.alloc(1000, i), Buffer.from(`record ${i}`)])
      await journal.sync()
    }
    await journal.close()
  }
  return home
}

/** Every file of a home with the digest of what is in it. */
function digests(home: string): Record<string, string> {
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return Object.fromEntries(
    files.map(entry => {
      const file = path.join(entry.parentPath, entry.name)
      return [path.relative(home, file), createHash('sha256').update(readFileSync(file)).digest('hex')]
    }),
  )
}

/** Changes bytes of a file that begin with a text, the last time that it stands there. */
function overwrite(file: string, text: string, bytes: Uint8Array, skip = 0) {
  const whole = readFileSync(file)
  const at = whole.lastIndexOf(text)
  assert.ok(at >= 0, `${text} is in ${file}`)
  whole.set(bytes, at + skip)
  writeFileSync(file, whole)
}

const state = (text: string, name: string) => new RegExp(`^\\w+ +${name} .*$`, 'm').exec(text)?.[0].split(/ +/).at(-1)

test('db status and checkpoint report the files and empty the log; a running daemon checks its tables', async () => {
  const home = await temporaryFolder('db')
  const { host, put } = await running(home)
  for (let i = 0; i < 20; i++) await put(`n${i}`)
  const status = JSON.parse((await svc(home, 'db', 'status', '--json')).stdout)
  assert.equal(
    [status.status, status.path, status.disk.status],
    ['ok', path.join(host.kernel.home.root, 'svc.db'), 'ok'],
  )
  assert.ok(status.wal_bytes > 20 * 800 && status.transactions >= 20 && status.syncs > 0)
  assert.ok(status.schema_streams.some((entry: { stream: string }) => entry.stream === 'kernel'))
  const moved = JSON.parse((await svc(home, 'db', 'checkpoint', '--json')).stdout)
  assert.ok(moved.moved_bytes >= status.wal_bytes)
  assert.is((await readFile(path.join(home, 'svc.db-wal'))).length, 0)
  assert.is(JSON.parse((await svc(home, 'db', 'status', '--json')).stdout).wal_bytes, 0)
  const said = await svc(home, 'db', 'verify')
  assert.is(said.code, 0, said.stderr)
  assert.is(state(said.stdout, 'kernel_record'), 'ok')
  assert.match(said.stdout, 'while the daemon is stopped')
  await host.close()
  await rm(home, { recursive: true })
})

test('a running daemon checks a copy of its file, once for concurrent callers, and removes it', async () => {
  const home = await temporaryFolder('db')
  const { host, put } = await running(home)
  try {
    for (let i = 0; i < 20; i++) await put(`n${i}`)
    const [one, other] = await Promise.all(['', ''].map(() => host.request('GET', '/api/db/verify')))
    assert.equal([one?.status, one?.body.status, other?.body], [200, 'ok', one?.body])
    const entries = (body: { checked: { name: string; entries: number }[] }) =>
      body.checked.find(({ name }) => name === 'kernel_record')?.entries
    assert.is(entries(one?.body), 20)
    await put('later')
    assert.is(entries((await host.request('GET', '/api/db/verify')).body), 21)
    // The kind of the page that the records are in.
    const file = path.join(home, 'svc.db')
    const whole = readFileSync(file)
    const page = whole.readUInt16BE(16)
    whole[Math.floor(whole.lastIndexOf('x'.repeat(200)) / page) * page] = 0
    writeFileSync(file, whole)
    const damaged = await host.request('GET', '/api/db/verify')
    assert.is(damaged.body.status, 'damaged')
    assert.is((await host.request('GET', '/api/resources/note/later')).status, 200)
    const left = readdirSync(path.join(home, 'cache')).filter(name => name.startsWith('verify-'))
    assert.equal(left, [])
  } finally {
    await host.close()
    await rm(home, { recursive: true })
  }
})

test('on a stopped home the database and every journal are checked without a change', async () => {
  const home = await stoppedHome()
  const before = digests(home)
  const { code, stdout, stderr } = await svc(home, 'db', 'verify')
  assert.is(code, 0, stderr)
  assert.match(stdout, new RegExp(`table +kernel_record +${RECORDS} +ok`))
  for (const name of JOURNALS) assert.match(stdout, new RegExp(`journal +${name} +20 +ok`))
  assert.match(stdout, '0 damaged')
  const { checked, status } = JSON.parse((await svc(home, 'db', 'verify', '--json')).stdout)
  assert.is(status, 'ok')
  assert.equal(checked[0], {
    kind: 'database',
    name: 'svc.db',
    entries: checked.length - 1 - JOURNALS.length,
    problems: [],
  })
  const { 'daemon.lock': _was, ...files } = before
  const { 'daemon.lock': _is, ...after } = digests(home)
  assert.equal(after, files)
  await rm(home, { recursive: true })
})

test('archives of a stopped home are checked one by one: a damaged one is named, the others are ok', async () => {
  const home = await temporaryFolder('db')
  const { host } = await running(home)
  await host.close()
  const folder = path.join(home, 'archives/old')
  await mkdir(folder, { recursive: true })
  for (const name of ['1.db', '2.db', '10.db']) {
    const store = await openStore({ path: path.join(folder, name), now: Date.now })
    store.migrate('old', [{ id: '001', sql: 'CREATE TABLE old_thing (id INTEGER PRIMARY KEY, text TEXT) STRICT' }])
    const rows =
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i, hex(randomblob(20)) FROM n'
    await store.db.tx(t => t.run(`INSERT INTO old_thing (id, text) ${rows}`))
    await store.close()
  }
  const file = path.join(folder, '2.db')
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0x5a, 8192, 65_536))
  const before = digests(home)
  const { code, stdout } = await svc(home, 'db', 'verify')
  assert.is(code, 1)
  for (const name of ['1.db', '10.db']) assert.match(stdout, new RegExp(`database +archives/old/${name} +\\d{4,} +ok`))
  assert.match(stdout, /database +archives\/old\/2\.db +\d+ +DAMAGED/)
  assert.match(stdout, '1 damaged')
  const { 'daemon.lock': _was, ...files } = before
  const { 'daemon.lock': _is, ...after } = digests(home)
  assert.equal(after, files)
  await rm(home, { recursive: true })
})

test('the files of a killed daemon are not damaged and are left for the next start', async () => {
  const home = await temporaryFolder('db')
  const { host, put } = await running(home)
  for (let i = 0; i < 50; i++) await put(`n${i}`)
  const journal = await openJournal({ dir: path.join(home, 'streams/one') })
  journal.append([Buffer.from('one'), Buffer.from('two')], { sync: true })
  await journal.sync()
  const killed = await temporaryFolder('db-killed')
  await cp(home, killed, { recursive: true, filter: file => !/daemon\.(lock|sock|json)$/.test(file) })
  await journal.close()
  await host.close()
  // A record that was cut off while it was written.
  await appendFile(path.join(killed, 'streams/one/events-1.log'), Buffer.from([3, 0, 0, 0, 1, 2, 3]))
  const before = digests(killed)
  assert.ok(readFileSync(path.join(killed, 'svc.db-wal')).length > 0)
  const { code, stdout } = await svc(killed, 'db', 'verify')
  assert.is(code, 0, stdout)
  assert.match(stdout, /table +kernel_record +50 +ok/)
  assert.match(stdout, /journal +streams\/one +2 +ok/)
  const { 'daemon.lock': _lock, ...after } = digests(killed)
  assert.equal(after, before)
  const next = await running(killed)
  assert.is((await next.host.request('GET', '/api/resources?limit=0')).body.records.length, 50)
  await next.host.close()
  for (const folder of [home, killed]) await rm(folder, { recursive: true })
})

test('a database with a lost page or inconsistent rows is damaged', async () => {
  const home = await stoppedHome()
  const file = path.join(home, 'svc.db')
  const good = readFileSync(file)
  overwrite(file, 'x'.repeat(800), Buffer.alloc(2000), -1500)
  const torn = await svc(home, 'db', 'verify')
  assert.is(torn.code, 1, torn.stdout)
  assert.match(torn.stdout, /^svc\.db: the database cannot be recovered/m)
  await writeFile(file, good)
  assert.is((await svc(home, 'db', 'verify')).code, 0)

  const store = await openStore({ path: file, now: () => 0 })
  store.migrate('guest', [
    {
      id: '001',
      sql: `CREATE TABLE guest_parent (id INTEGER PRIMARY KEY, name TEXT) STRICT;
        CREATE INDEX guest_name ON guest_parent (name);
        CREATE TABLE guest_child (note TEXT, parent TEXT REFERENCES guest_owner (name)) STRICT;
        CREATE TABLE guest_owner (name TEXT PRIMARY KEY) STRICT;`,
    },
  ])
  await store.db.bind({ name: 'guest', tables: 'guest' }).tx(t => {
    t.run("INSERT INTO guest_parent VALUES (1, 'a name that is looked up'), (2, 'another name')")
    t.run("INSERT INTO guest_owner VALUES ('an owner')")
    t.run("INSERT INTO guest_child VALUES ('owned by', 'an owner')")
  })
  await store.close()
  // In the row only: its index says something else then.
  overwrite(file, 'a name that is looked up', Buffer.from('A NAME'))
  overwrite(file, 'owned byan owner', Buffer.from('owned byNO OWNER'))
  const { code, stdout } = await svc(home, 'db', 'verify', '--json')
  const { status, checked } = JSON.parse(stdout)
  assert.equal([code, status], [1, 'damaged'])
  const problems = Object.fromEntries(
    checked.map((entry: { name: string; problems: string[] }) => [entry.name, entry.problems.join()]),
  )
  assert.match(problems.guest_parent, 'guest_name')
  assert.is(problems.guest_child, 'row 1 refers to a row of guest_owner that does not exist')
  assert.is(problems.kernel_record, '')
  await rm(home, { recursive: true })
})

test('damage in one journal is named with file and offset, and the others are checked', async () => {
  const home = await stoppedHome()
  const segments = readdirSync(path.join(home, 'streams/one')).filter(name => name.endsWith('.log'))
  assert.ok(segments.length > 1)
  const first = path.join(home, 'streams/one/events-1.log')
  overwrite(first, 'record 0', Buffer.from('RECORD'))
  await rm(path.join(home, 'streams/two/journal.json'))
  await mkdir(path.join(home, 'streams/empty'))
  const { code, stdout } = await svc(home, 'db', 'verify')
  assert.is(code, 1)
  assert.is(state(stdout, 'streams/one'), 'DAMAGED')
  assert.is(state(stdout, 'streams/two'), 'DAMAGED')
  assert.is(state(stdout, 'events'), 'ok')
  assert.is(state(stdout, 'kernel_record'), 'ok')
  assert.match(stdout, `${first} at offset `)
  assert.match(stdout, '2 damaged')
  await rm(home, { recursive: true })
})

test('a missing home and an unresponsive holder of the home are reported', async () => {
  const home = await temporaryFolder('db')
  const none = await svc(path.join(home, 'none'), 'db', 'verify')
  assert.equal([none.code, none.stdout], [4, ''])
  assert.match(none.stderr, 'there is no database')
  const host = await boot({ plugins: [daemon], home })
  const held = await svc(home, 'db', 'verify')
  assert.is(held.code, 3)
  assert.match(held.stderr, 'does not answer')
  await host.close()
  await rm(home, { recursive: true })
})

test.run()
