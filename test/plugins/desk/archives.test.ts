import { rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../kernel/plugin.js'
import { type Archive, Archives, type ArchivesApi } from '../../../plugins/desk/archives/api.js'
import archives from '../../../plugins/desk/archives/index.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'

const FIRST = { id: '001', sql: 'CREATE TABLE old_thing (id TEXT PRIMARY KEY NOT NULL, text TEXT NOT NULL) STRICT;' }
const SECOND = { id: '002', sql: "ALTER TABLE old_thing ADD COLUMN more TEXT NOT NULL DEFAULT 'none';" }

/** A daemon with a plugin that has an archive. */
async function open(home: string, tables = [FIRST]) {
  let archive: Archive | undefined
  class Old {
    constructor({ needs }: PluginKernel<{ archives: typeof Archives }>) {
      archive = (needs.archives as ArchivesApi).open(tables)
    }
  }
  const old = definePlugin({
    name: 'old',
    version: '1.0.0',
    requires: { archives: Archives },
    service: async () => Old,
  }).surface({})
  const clock = new VirtualClock()
  const host = await boot({ plugins: [archives, old], home, clock })
  assert.ok(archives && archive)
  const put = (from: number, to: number, text = 'x') =>
    (archive as Archive).add(t => {
      for (let n = from; n < to; n++)
        t.run('INSERT OR REPLACE INTO old_thing (id, text) VALUES (?, ?)', [`t${n}`, text])
    })
  const count = (segment: number) =>
    (archive as Archive).use(segment, db => Number(db.row('SELECT count(*) FROM old_thing')?.[0]))
  return { host, archive, put, count, clock }
}

test('archived rows survive a restart, in segments filled in order', async () => {
  const home = await temporaryFolder('archives')
  const first = await open(home)
  assert.equal(await first.archive.segments(), [])
  assert.is(await first.put(0, 10), 1)
  assert.is(await first.put(10, 20), 1)
  // 17 MB: the segment is full for the next.
  assert.is(await first.put(20, 22, 'y'.repeat(8_500_000)), 1)
  assert.is(await first.put(22, 23), 2)
  await first.host.close()
  const next = await open(home, [FIRST, SECOND])
  assert.equal(await next.archive.segments(), [1, 2])
  assert.equal([await next.count(1), await next.count(2)], [22, 1])
  // Tables of an earlier version are brought up to date when they are read.
  assert.is(await next.archive.use(2, db => db.row('SELECT more FROM old_thing')?.[0]), 'none')
  assert.is(await next.put(23, 24), 2)
  await next.host.close()
  await rm(home, { recursive: true })
})

test('a missing segment is a fault, and others are readable', async () => {
  const home = await temporaryFolder('archives')
  const { archive, put, count, host } = await open(home)
  await put(0, 2, 'y'.repeat(8_500_000))
  await put(2, 3)
  await host.close()
  const next = await open(home)
  const file = path.join(home, 'archives/old/1.db')
  await rename(file, `${file}.away`)
  assert.is(await next.count(1).catch(error => error.code), 'archive_missing')
  assert.is(await next.count(2), 1)
  await rename(`${file}.away`, file)
  assert.is(await next.count(1), 2)
  assert.ok(archive && count)
  await next.host.close()
  await rm(home, { recursive: true })
})

test('at most two segments are in memory, and an unused one is closed after a while', async () => {
  const home = await temporaryFolder('archives')
  const { archive, put, count, host, clock } = await open(home)
  for (let n = 0; n < 3; n++) await put(n * 2, n * 2 + 2, 'y'.repeat(8_500_000))
  assert.equal(await archive.segments(), [1, 2, 3])
  let go: () => void = () => {}
  const held = new Promise<void>(resolve => {
    go = resolve
  })
  const begun: number[] = []
  const using = [1, 2].map(segment =>
    archive.use(segment, () => {
      begun.push(segment)
      return held
    }),
  )
  while (begun.length < 2) await new Promise(resolve => setImmediate(resolve))
  let third: number | undefined
  const waiting = count(3).then(found => {
    third = found
  })
  assert.is(await count(1), 2, 'one that is open is used by several')
  assert.is(third, undefined)
  go()
  await Promise.all([...using, waiting])
  assert.is(third, 2)
  // Closed ones are opened again.
  await clock.advance(60_000)
  assert.equal([await count(1), await count(2), await count(3)], [2, 2, 2])
  await host.close()
  await rm(home, { recursive: true })
})

test.run()
