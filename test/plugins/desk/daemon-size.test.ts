import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandData } from '../../../cli/commands/command-data.js'
import { describeRoutes } from '../../../cli/commands/describe-commands.js'
import { openStore } from '../../../kernel/store/index.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { measure } from '../../../plugins/desk/daemon/size.js'
import resources from '../../../plugins/platform/resources/index.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { runCli } from '../../cli/fake-daemon.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { body, notes } from '../platform/resource-scene.js'

const TABLES = `
CREATE TABLE big_text (id TEXT PRIMARY KEY NOT NULL, status TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX big_text_failed ON big_text (text) WHERE status = 'failed';
CREATE TABLE big_pair (a TEXT NOT NULL, b INTEGER NOT NULL, text TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
CREATE TABLE big_empty (a TEXT NOT NULL) STRICT;`

test('every row is counted, and database pages belong to tables or are free', async () => {
  const root = await temporaryFolder('size')
  const clock = new VirtualClock()
  const store = await openStore({ path: path.join(root, 'svc.db'), now: () => clock.now() })
  store.migrate('big', [{ id: '001', sql: TABLES }])
  const fill = (from: number, to: number) =>
    store.db.tx(t => {
      for (let n = from; n < to; n++) {
        const status = n % 10 === 0 ? 'failed' : 'completed'
        t.run('INSERT INTO big_text VALUES (?, ?, ?)', [`text_${n}`, status, 'x'.repeat(900)])
        t.run('INSERT INTO big_pair VALUES (?, ?, ?)', [`pair_${n >> 3}`, n % 8, 'y'.repeat(100)])
      }
    })
  await fill(0, 4000)
  const size = () => measure({ db: store.db, clock, root, owners: ['kernel', 'big', 'bi'] })
  const full = await size()
  const item = ({ items }: typeof full, name: string) => {
    const found = items.find(one => one.name === name)
    assert.ok(found, name)
    return found
  }
  assert.equal([item(full, 'big_text').entries, item(full, 'big_pair').entries], [4000, 4000])
  assert.equal([item(full, 'big_empty').entries, item(full, 'big_text').owner], [0, 'big'])
  assert.is(item(full, 'kernel_migration').owner, 'kernel')
  const pages = full.items.filter(({ kind }) => kind === 'table' || kind === 'free')
  const sum = pages.reduce((total, { bytes }) => total + bytes, 0)
  assert.ok(Math.abs(sum - full.database_bytes) <= pages.length, `${sum} of ${full.database_bytes}`)
  // 4000 texts of 900 bytes, a tenth of them once more in the partial index, and their keys.
  const { bytes } = item(full, 'big_text')
  assert.ok(bytes > 3.9e6 && bytes < 5e6, `${bytes}`)
  assert.is(full.items.find(({ kind }) => kind === 'table')?.name, 'big_text')

  await store.db.tx(t => t.run('DELETE FROM big_text WHERE id > ?', ['text_2']))
  const less = await size()
  assert.ok(less.free_bytes > 2e6, `${less.free_bytes}`)
  assert.is(less.database_bytes, full.database_bytes)
  assert.ok(item(less, 'big_text').bytes < bytes / 2)
  await store.close()
  await rm(root, { recursive: true })
})

test('db size lists tables, folders and files of the home, the largest first', async () => {
  const home = await temporaryFolder('size')
  const host = await boot({ plugins: [daemon, resources, notes().plugin], home })
  for (let i = 0; i < 20; i++) await host.request('PUT', `/api/resources/note/n${i}`, body('x'.repeat(800)))
  await mkdir(path.join(home, 'sessions/one'), { recursive: true })
  await writeFile(path.join(home, 'sessions/one/events-1.log'), Buffer.alloc(3_000_000))
  await writeFile(path.join(home, 'sessions/note'), 'abc')
  const { status, body: reply } = await host.request('GET', '/api/db/size')
  assert.is(status, 200)
  assert.equal(
    reply.items.find(({ name }: { name: string }) => name === 'sessions/'),
    { kind: 'folder', name: 'sessions/', entries: 2, bytes: 3_000_003 },
  )
  const sizes = reply.items.map(({ bytes }: { bytes: number }) => bytes)
  assert.equal(
    sizes,
    sizes.toSorted((a: number, b: number) => b - a),
  )
  assert.is(reply.items.find(({ name }: { name: string }) => name === 'kernel_record').entries, 20)
  assert.is(reply.complete, true)
  assert.not.ok(reply.items.some(({ name }: { name: string }) => name === 'svc.db'))
  await host.close()
  await rm(home, { recursive: true })
})

const module = fileURLToPath(new URL('../../../plugins/desk/daemon/commands.ts', import.meta.url))
const command = {
  kind: 'module',
  path: 'db size',
  summary: '',
  args: [],
  options: [],
  module,
  export: 'runSize',
} as const
const data: CommandData = { version: '0', routes: describeRoutes(daemon.surface.routes ?? []), commands: [command] }

test('svc db size prints the same with and without a daemon; empty tables are only counted', async () => {
  const home = await temporaryFolder('size')
  const host = await boot({ plugins: [daemon, resources, notes().plugin], home, listen: ['socket'] })
  for (let i = 0; i < 20; i++) await host.request('PUT', `/api/resources/note/n${i}`, body('x'.repeat(800)))
  const running = await runCli(home, ['db', 'size'], { data })
  assert.is(running.code, 0, running.stderr)
  assert.match(running.stdout, /^kernel_record +\S+ +table +20 /m)
  assert.not.match(running.stdout, /table +0 /)
  assert.match(running.stdout, /^\d+ tables are empty$/m)
  const asked = await runCli(home, ['db', 'size', '--json'], { data })
  const empty = JSON.parse(asked.stdout).items.filter(
    ({ kind, entries }: { kind: string; entries: number }) => kind === 'table' && entries === 0,
  )
  assert.match(running.stdout, `${empty.length} tables are empty`)
  await host.close()
  const stopped = await runCli(home, ['db', 'size'], { data })
  assert.is(stopped.code, 0, stopped.stderr)
  assert.match(stopped.stdout, /^kernel_record +\S+ +table +20 /m)
  const none = await runCli(path.join(home, 'none'), ['db', 'size'], { data })
  assert.is(none.code, 4)
  await rm(home, { recursive: true })
})

test.run()
