import { cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { event } from '../../../../kernel/contract/surface.js'
import { createKernel } from '../../../../kernel/kernel.js'
import { type Disk, systemDisk } from '../../../../kernel/store/disk.js'
import { base } from '../../../../plugins/index.js'
import type { StoredEvent } from '../../../../plugins/platform/events/api.js'
import { conditions, eventMigrations } from '../../../../plugins/platform/events/rows.js'
import { openJournal } from '../../../../plugins/platform/journals/open.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { DAY, inFolder, Lost, Made, openLog, range, readAll, until } from './event-log.js'

const seqs = (events: readonly StoredEvent[]) => events.map(event => event.seq)
const withLog = (use: (log: Awaited<ReturnType<typeof openLog>>, folder: string) => Promise<void>) =>
  inFolder(async folder => {
    const log = await openLog(folder)
    await use(log, folder)
    await log.close()
  })

/** 200 events of two names, three scopes and nine subjects over four days, the clock being set back once. */
async function fill({ clock, emit }: Awaited<ReturnType<typeof openLog>>): Promise<void> {
  for (let n = 1; n <= 200; n++) {
    if (n % 40 === 0) clock.jump(n === 120 ? -DAY / 3 : DAY)
    await emit(n % 3 === 0 ? Lost : Made, n, n, n % 5 === 0 ? {} : { scope: `scope${n % 3}`, subject: `s${n % 9}` })
  }
}

/** How many records the journal has, read by somebody else. */
async function journalled(folder: string): Promise<number[]> {
  const copy = path.join(folder, 'copy')
  await cp(path.join(folder, 'events'), copy, { recursive: true })
  const journal = await openJournal({ dir: copy, segmentBytes: 2048 })
  const records = await journal.read(1, 10_000)
  await journal.close()
  await rm(copy, { recursive: true })
  return records.map(record => JSON.parse(Buffer.from(record.payload).toString()).seq)
}

test('a list reads the same from any position, across table and journal', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    await first.emit(Made, 1, 2)
    await fill(first)
    const before = await first.all()
    assert.equal(seqs(before), range(1, 202))
    await first.log.sweep()
    assert.is(first.log.first(), 153)
    assert.equal(await journalled(folder), range(1, 152))
    assert.equal(await first.all(), before)
    for (const limit of [1, 7, 60, 150]) {
      for (const after of [0, 1, 99, 140, 151, 152, 153, 201, 202, 300]) {
        const page = await first.log.list({ after, limit })
        assert.equal(seqs(page), range(after + 1, Math.max(after, Math.min(202, after + limit))))
      }
    }
    for (const filter of [{ name: 'thing.lost' }, { subject: 's4' }, { name: 'thing.made', subject: 's7' }]) {
      const { name, subject } = filter as { name?: string; subject?: string }
      const naive = before.filter(e => (!name || e.name === name) && (!subject || e.subject === subject))
      assert.ok(naive.length > 10)
      assert.equal(await first.log.list({ ...filter, limit: 1000 }), naive)
      assert.equal(await first.log.list({ ...filter, after: 20, limit: 9 }), naive.filter(e => e.seq > 20).slice(0, 9))
      assert.equal(first.plugin('p').events.latest(filter), naive.at(-1))
    }
    await first.close()
    const second = await openLog(folder)
    assert.equal(await second.all(), before)
    assert.is(second.log.last, 202)
    await second.close()
  }))

test('a list during a move misses and repeats nothing', () =>
  withLog(async ({ log, emit }) => {
    await emit(Made, 1, 400)
    const lists = range(1, 30).map(limit => readAll(filter => log.list(filter), limit * 3))
    const sweep = log.sweep()
    for (const list of await Promise.all(lists)) assert.equal(seqs(list), range(1, 400))
    await sweep
    assert.is(log.first(), 351)
  }))

test('the table is swept when it has grown by a chunk', () =>
  withLog(async ({ log, emit }) => {
    for (let n = 1; n <= 300; n++) {
      await emit(Made, n, n)
      if (n % 50 === 0) await log.sweep()
    }
    for (let n = 301; n <= 400; n++) await emit(Made, n, n)
    // The last sweep may still be under way on a slow disk.
    await until(() => log.first() > 400 - 50 - 2 * 20)
    assert.ok(log.first() <= 400 - 50 + 1)
    await log.close()
  }))

test('an event is found by its id, or only before a position; an unknown id is not', () =>
  withLog(async ({ log, emit, all }) => {
    for (let n = 1; n <= 30; n++) await emit(Made, n, n)
    for (const event of await all()) {
      assert.equal(log.find(event.id), event)
      assert.equal(log.find(event.id, event.seq + 1), event)
      assert.is(log.find(event.id, event.seq), undefined)
    }
    assert.is(log.find('req_0123456789abcdef'), undefined)
    assert.is(log.find('evt_0123456789abcdef'), undefined)
  }))

test('an event that is not durable is not listed', () =>
  withLog(async ({ log, emit, plugin }) => {
    const { events } = plugin('p')
    await emit(Made, 1, 1)
    const day = '2030-01-01'
    const shown = () => [log.last, events.latest({})?.seq, log.counts({ from: day, to: day })[0]?.n]
    const second = emit(Made, 2, 2)
    const listed = events.list({})
    assert.equal(shown(), [1, 1, 1])
    assert.equal(seqs(await listed), [1])
    await second
    assert.equal(shown(), [2, 2, 2])
  }))

test('positions continue after all events were moved', () =>
  inFolder(async folder => {
    const first = await openLog(folder, { limits: { keepRows: 0 } })
    await first.emit(Made, 1, 30)
    await first.log.sweep()
    assert.is(first.log.first(), 31)
    assert.equal(seqs(await first.all()), range(1, 30))
    await first.close()
    const second = await openLog(folder, { limits: { keepRows: 0 } })
    assert.is(second.log.last, 30)
    await second.emit(Made, 31, 31)
    await second.log.sweep()
    assert.equal(seqs(await second.all()), range(1, 31))
    await second.close()
  }))

test('counts across table and journal equal a naive count', () =>
  withLog(async one => {
    await fill(one)
    const all = await one.all()
    const day = (at: number) => new Date(at).toISOString().slice(0, 10)
    const days = [...new Set(all.map(event => day(event.at)))].sort()
    assert.is(days.length, 4)
    const naive = (from: string, to: string, fits: (event: StoredEvent) => boolean) => {
      const counts = new Map<string, number>()
      for (const event of all) {
        const key = `${day(event.at)} ${event.name}`
        if (day(event.at) >= from && day(event.at) <= to && fits(event)) counts.set(key, (counts.get(key) ?? 0) + 1)
      }
      return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, n]) => `${key} ${n}`)
    }
    const check = (from: string, to: string) => {
      const counted = (filter: { name?: string; scope?: string; subject?: string }) =>
        one.log.counts({ ...filter, from, to }).map(({ day, name, n }) => `${day} ${name} ${n}`)
      assert.equal(
        counted({}),
        naive(from, to, () => true),
      )
      assert.equal(
        counted({ name: 'thing.lost' }),
        naive(from, to, event => event.name === 'thing.lost'),
      )
      assert.equal(
        counted({ scope: 'scope1' }),
        naive(from, to, event => event.scope === 'scope1'),
      )
      assert.equal(
        counted({ subject: 's2', name: 'thing.made' }),
        naive(from, to, event => event.subject === 's2' && event.name === 'thing.made'),
      )
    }
    const checkAll = () => {
      for (const from of days) for (const to of days) check(from, to)
    }
    checkAll()
    for (let moved = true; moved; checkAll()) moved = await one.log.outbox.move(one.log.last, one.clock.now())
    assert.is(one.log.first(), 151)
    for (const bad of ['', '2026-1-1', '2026-13-01', 'today']) {
      assert.throws(
        () => one.log.counts({ from: bad, to: '2026-01-01' }),
        (error: { code: string }) => error.code === 'invalid_filter',
      )
    }
  }))

test('a crash during the append or before the delete repeats and loses nothing', () =>
  inFolder(async folder => {
    for (const reached of [20, 7, 1]) {
      const crashed = await openLog(folder)
      const from = crashed.log.last + 1
      await crashed.emit(Made, 1, 100)
      const picked = crashed.log.outbox.pick(crashed.log.last, crashed.clock.now())
      assert.is(picked.length, 20)
      await crashed.log.archive.append(picked.slice(0, reached))
      const counted = crashed.log.counts({ from: '2030-01-01', to: '2030-01-01' })
      assert.equal(counted, [{ day: '2030-01-01', name: 'thing.made', n: from + 99 }])
      await crashed.store.close()

      const next = await openLog(folder)
      assert.equal(seqs(await next.all()), range(1, from + 99))
      await next.log.sweep()
      assert.equal(next.faults, [])
      assert.is(next.log.first(), from + 50)
      assert.equal(await journalled(folder), range(1, from + 49))
      assert.equal(seqs(await next.all()), range(1, from + 99))
      assert.equal(next.log.counts({ from: '2030-01-01', to: '2030-01-01' }), counted)
      await next.close()
    }
  }))

test('a failed append is reported and repeated by the next sweep', () =>
  inFolder(async folder => {
    const real = systemDisk()
    let failing = false
    const disk: Disk = {
      ...real,
      fsync: handle => (failing ? Promise.reject(new Error('no space left')) : real.fsync(handle)),
    }
    const { log, emit, faults, all, close } = await openLog(folder, { disk })
    await emit(Made, 1, 100)
    await log.sweep()
    failing = true
    await emit(Made, 101, 200)
    await log.sweep()
    assert.match(faults.join(), /kernel: events outbox: .*no space left/)
    assert.is(log.first(), 51)
    failing = false
    await log.sweep()
    assert.is(log.first(), 151)
    assert.equal(seqs(await all()), range(1, 200))
    await close()
    assert.equal(await journalled(folder), range(1, 150))
  }))

test('a damaged journal stops only itself: rows in the table stay and are read', () =>
  inFolder(async folder => {
    const first = await openLog(folder, { segmentBytes: 1e6 })
    await first.emit(Made, 1, 100)
    await first.log.sweep()
    await first.close()
    const file = path.join(folder, 'events/events-1.log')
    const good = await readFile(file)
    const bad = Buffer.from(good)
    bad[3000] = (bad[3000] as number) ^ 1
    await writeFile(file, bad)
    const { log, emit, faults, close } = await openLog(folder, { segmentBytes: 1e6 })
    await emit(Made, 101, 200)
    await log.sweep()
    assert.match(faults.join(), /kernel: events outbox: journal damaged/)
    assert.is(log.first(), 51)
    assert.equal(seqs(await log.list({ after: 50 })), range(51, 200))
    const refused = await log.list({ after: 49 }).catch(error => error.code)
    assert.is(refused, 'journal_damaged')
    await writeFile(file, good)
    await log.sweep()
    assert.is(log.first(), 151)
    assert.equal(seqs(await log.list({ after: 0, limit: 1000 })), range(1, 200))
    await close()
  }))

test('a journal ahead of the database is not changed, and a new one starts when it is moved away', () =>
  inFolder(async folder => {
    const first = await openLog(folder)
    await first.emit(Made, 1, 200)
    await first.log.sweep()
    await first.close()
    for (const name of await readdir(folder)) if (name.startsWith('svc.db')) await rm(path.join(folder, name))
    const { log, emit, faults, all, close } = await openLog(folder)
    await emit(Made, 1, 100)
    await log.sweep()
    assert.match(faults.join(), /kernel: events outbox: .*one of them was restored from a backup/)
    assert.is(log.first(), 1)
    assert.equal(await journalled(folder), range(1, 150))
    await rename(path.join(folder, 'events'), path.join(folder, 'aside'))
    await log.sweep()
    assert.is(log.first(), 51)
    assert.equal(seqs(await all()), range(1, 100))
    await close()
    // The same without the oldest: positions of records and of events differ.
    await rename(path.join(folder, 'events'), path.join(folder, 'aside2'))
    const last = await openLog(folder)
    await last.emit(Made, 1, 100)
    await last.log.sweep()
    assert.equal(seqs(await last.all()), range(51, 200))
    for (const after of [50, 51, 99, 148, 149, 150]) {
      assert.equal(seqs(await last.log.list({ after, limit: 3 })), range(after + 1, after + 3))
    }
    await last.close()
  }))

test('a journal from an older backup lacks some events; the others are found by position', () =>
  inFolder(async folder => {
    const [events, backup] = ['events', 'backup'].map(name => path.join(folder, name)) as [string, string]
    const run = async (use: (log: Awaited<ReturnType<typeof openLog>>) => Promise<void>) => {
      const log = await openLog(folder)
      await log.emit(Made, 1, 100)
      await log.log.sweep()
      await use(log)
      assert.equal(log.faults, [])
      await log.close()
    }
    await run(async () => {})
    await cp(events, backup, { recursive: true })
    await run(async () => {})
    await rm(events, { recursive: true })
    await rename(backup, events)
    await run(async ({ log }) => {
      const there = [...range(1, 50), ...range(151, 300)]
      for (let after = 0; after <= 300; after += 7) {
        assert.equal(seqs(await log.list({ after, limit: 9 })), there.filter(seq => seq > after).slice(0, 9))
      }
    })
  }))

test('retention deletes whole files by age and size; counts stay a year', () =>
  inFolder(async folder => {
    const clock = new VirtualClock()
    const limits = { keepRows: 10, retentionMs: 3 * DAY }
    const first = await openLog(folder, { clock, limits })
    const firstDay = new Date(clock.now()).toISOString().slice(0, 10)
    for (let day = 0; day < 8; day++) {
      await first.emit(Made, 1, 50)
      await first.log.sweep()
      clock.jump(DAY)
    }
    const kept = await first.all()
    // 8 days later; the newest three days must be there, and of older ones no more than what shares a file with them.
    const old = kept.filter(event => event.at < clock.now() - 4 * DAY)
    assert.ok(kept.length >= 150 && kept.length < 400 && old.length < 20, `${kept.length} kept, ${old.length} old`)
    assert.equal(seqs(kept), range(401 - kept.length, 400))
    const total = (at: Awaited<ReturnType<typeof openLog>>) =>
      at.log.counts({ from: firstDay, to: '2040-01-01' }).reduce((sum, { n }) => sum + n, 0)
    assert.is(total(first), 400)
    await first.close()

    const small = await openLog(folder, { clock, limits: { ...limits, maxBytes: 3 * 2048 } })
    await small.log.sweep()
    const files = (await readdir(path.join(folder, 'events'))).filter(name => name.startsWith('events-'))
    assert.is(files.length, 3)
    const left = await small.all()
    assert.ok(left.length > 10 && left.length < kept.length)
    assert.equal(seqs(left), range(401 - left.length, 400))
    clock.jump(400 * DAY)
    await small.emit(Made, 1, 1)
    await small.log.sweep()
    assert.equal(small.faults, [])
    assert.ok(total(small) <= 11, 'what the table still has')
    assert.is((await small.all()).at(-1)?.seq, 401)
    await small.close()
  }))

test('a list by name or subject finds events in the indexes and events that enter them later', () =>
  inFolder(async folder => {
    const limits = { keepRows: 1000, chunkRows: 20 }
    const first = await openLog(folder, { limits })
    const said = async ({ log }: typeof first) => {
      const ns = (events: readonly StoredEvent[]) => events.map(({ payload }) => (payload as { n: number }).n)
      const filters = [{ name: Made.name }, { subject: 'a' }, { name: Made.name, subject: 'a' }, {}]
      const pages = filters.map(async filter => [
        ns(await log.list(filter)),
        ns(log.rows(filter, 0, 60, 'DESC')),
        ns(log.rows(filter, 5, 3)),
        log.counts({ ...filter, from: '1970-01-01', to: '9999-12-31' }).map(({ name, n }) => ({ name, n })),
      ])
      return Promise.all(pages)
    }
    const emitSome = async ({ emit }: typeof first, from: number) => {
      await emit(Made, from, from + 5, { subject: 'a' })
      await emit(Lost, from + 6, from + 11, { subject: 'a' })
      await emit(Made, from + 12, from + 17)
    }
    const later = ({ store }: typeof first) =>
      Number(store.db.row('SELECT count(*) FROM kernel_event WHERE indexed IS NULL')?.[0])
    await emitSome(first, 1)
    assert.is(later(first), 18)
    const before = await said(first)
    await first.log.sweep()
    assert.is(later(first), 0)
    assert.equal(await said(first), before)
    await emitSome(first, 19)
    assert.is(later(first), 18)
    const both = await said(first)
    assert.equal(both[0]?.[0], [...range(1, 6), ...range(13, 24), ...range(31, 36)])
    assert.equal(both[1]?.[1], range(1, 12).concat(range(19, 30)).reverse())
    await first.close()
    const second = await openLog(folder, { limits })
    assert.equal(await said(second), both)
    await second.log.sweep()
    assert.equal([later(second), await said(second)], [0, both])
    await second.close()
  }))

test('indexed events are read by name and by subject from the indexes', async () => {
  const { Database } = await createRequire(import.meta.url)('sql.js')()
  const db = new Database()
  for (const { sql } of eventMigrations) db.run(sql)
  for (const column of ['name', 'subject']) {
    const { sql } = conditions({ [column]: 'x' })
    const page = `SELECT * FROM kernel_event WHERE seq > ? AND seq <= ? AND indexed = 1 AND ${sql} ORDER BY seq DESC LIMIT +?`
    const [plan] = db.exec(`EXPLAIN QUERY PLAN ${page}`)
    assert.match(plan.values.join(), `USING INDEX kernel_event_of_${column}`)
    assert.is(plan.values.length, 1, 'nothing is sorted')
    const counted = `SELECT name FROM kernel_event WHERE seq <= ? AND at / 86400000 BETWEEN ? AND ? AND (indexed = 1 AND ${sql} OR seq > ? AND ${sql})`
    const [either] = db.exec(`EXPLAIN QUERY PLAN ${counted}`)
    assert.match(either.values.join(), `USING INDEX kernel_event_of_${column}`)
    assert.match(either.values.join(), 'USING INTEGER PRIMARY KEY (rowid>?')
  }
})

test('events older than the retention leave even a small table, unless a durable cursor needs them', () =>
  inFolder(async folder => {
    const clock = new VirtualClock()
    const limits = { keepRows: 1000, chunkRows: 20, retentionMs: 3 * DAY }
    const { log, emit, plugin, faults, all, close } = await openLog(folder, { clock, limits })
    const rows = () => Number(log.kernel.db.row('SELECT count(*) FROM kernel_event')?.[0])
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    await emit(Made, 1, 90)
    clock.jump(2 * DAY)
    await emit(Made, 91, 120)
    await log.sweep()
    assert.is(rows(), 120)
    clock.jump(DAY + 1)
    await log.sweep()
    assert.is(rows(), 30)
    assert.equal(seqs(await all()), range(91, 120))
    assert.equal(log.counts({ from: day, to: day }), [{ day, name: Made.name, n: 90 }])
    const stuck = plugin('stuck')
    stuck.events.on({ type: Made, cursor: 'c' }, () => Promise.reject(new Error('not today')))
    await emit(Made, 121, 130)
    await until(() => faults.length > 0)
    clock.jump(3 * DAY + 1)
    await log.sweep()
    // What it has not handled stays as long as a cursor may be behind.
    assert.equal(seqs(await all()), range(121, 130))
    clock.jump(5 * DAY)
    await log.sweep()
    assert.is(rows(), 0)
    await emit(Made, 131, 131)
    assert.equal(seqs(await all()), [131])
    await stuck.end()
    await close()
  }))

test('an event older than the retention is not listed while its journal file exists', () =>
  inFolder(async folder => {
    const clock = new VirtualClock()
    const limits = { keepRows: 10, retentionMs: 3 * DAY }
    const { log, emit, all, close } = await openLog(folder, { clock, limits, segmentBytes: 1e6 })
    await emit(Made, 1, 40)
    await log.sweep()
    clock.jump(2 * DAY)
    await emit(Made, 41, 60)
    await log.sweep()
    clock.jump(2 * DAY)
    await log.sweep()
    assert.equal(await journalled(folder), range(1, 50))
    assert.equal(seqs(await all()), range(41, 60))
    await close()
  }))

test('the kernel sweeps at its start and owns the retention settings', () =>
  inFolder(async folder => {
    const start = async (text: string) => {
      await writeFile(path.join(folder, 'config.json'), text)
      const kernel = await createKernel({ home: folder, plugins: base })
      return kernel.close()
    }
    assert.equal(await start('{ "observability": { "retention_days": 30, "max_global_bytes": 16777216 } }'), [])
    for (const bad of ['"retention_days": 0', '"max_global_bytes": 5', '"retention_day": 3']) {
      const refused = await start(`{ "observability": { ${bad} } }`).catch(error => error.code)
      assert.is(refused, 'config_invalid')
    }
  }))

test('an oversized event or one named gap is refused', () =>
  withLog(async ({ store, log }) => {
    assert.throws(() => event('gap', v.object({})), /no event can be named gap/)
    const Text = event('thing.text', v.string())
    const refused = await store.db.tx(t => log.emitAll(t, [[Text, 'x'.repeat(300_000)]])).catch(error => error.code)
    assert.is(refused, 'payload_too_large')
    assert.is(log.last, 0)
  }))

test.run()
