import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { asyncCalls } from '../../../../kernel/kit/read-file.js'
import { crc32c } from '../../../../plugins/platform/journals/crc32c.js'
import { openJournal } from '../../../../plugins/platform/journals/open.js'
import { LARGEST_PAYLOAD } from '../../../../plugins/platform/journals/record.js'
import { checkAll, closed, payloads, text } from '../../../kernel/fixtures/journals.js'
import { codeOf, inFolder, smallDisk, watchedDisk } from '../../../kernel/store/harness.js'

test('the checksum is CRC32C', () => {
  assert.is(crc32c(Buffer.from('123456789')), 0xe3069283)
  assert.is(crc32c(new Uint8Array(32)), 0x8a9136aa)
  assert.is(crc32c(Buffer.from('6789'), crc32c(Buffer.from('12345'))), 0xe3069283)
})

test('records are read back in order, also after a reopen', () =>
  inFolder(async dir => {
    const journal = await openJournal({ dir })
    assert.equal([journal.generation, journal.first, journal.last], [1, 1, 0])
    assert.equal(await journal.read(1, 10), [])
    assert.equal(journal.append(payloads(1, 3)), [1, 2, 3])
    assert.equal(journal.append([]), [])
    assert.equal(journal.append(payloads(4, 5), { sync: true }), [4, 5])
    await journal.written()
    await checkAll(journal, 1, 5)
    assert.equal(
      (await journal.read(2, 2)).map(record => record.sequence),
      [2, 3],
    )
    assert.equal(
      (await journal.read(0, 1)).map(record => record.sequence),
      [1],
    )
    await journal.close()
    const again = await openJournal({ dir })
    assert.equal([again.generation, again.first, again.last], [1, 1, 5])
    again.append(payloads(6, 6))
    await again.sync()
    await checkAll(again, 1, 6)
    await again.close()
    assert.is(await codeOf(() => again.append(payloads(7, 7))), 'journal_closed')
    assert.equal((await readdir(dir)).sort(), ['events-1.log', 'journal.json'])
    assert.is((await stat(path.join(dir, 'events-1.log'))).mode & 0o777, 0o600)
  }))

test('files with only records before a sequence are deleted, never the newest', () =>
  inFolder(async dir => {
    const journal = await openJournal({ dir, segmentBytes: 1 })
    for (let next = 1; next <= 5; next++) {
      journal.append(payloads(next, next))
      await journal.sync()
    }
    assert.equal(journal.files, [1, 2, 3, 4, 5])
    await journal.drop(3)
    assert.equal([journal.files, journal.first, journal.last], [[3, 4, 5], 3, 5])
    await checkAll(journal, 3, 5)
    journal.append(payloads(6, 6))
    await journal.drop(100)
    await journal.sync()
    await journal.close()
    const again = await openJournal({ dir })
    assert.equal([again.generation, again.last], [1, 6])
    await checkAll(again, again.first, 6)
    await again.close()
    assert.equal((await readdir(dir)).sort(), [...again.files.map(first => `events-${first}.log`), 'journal.json'])
  }))

test('reading from the middle of 100,000 records reads few bytes', () =>
  inFolder(async dir => {
    const total = 100_000
    let bytesRead = 0
    const disk = watchedDisk(call => {
      if (call.name === 'read') bytesRead += (call.args[1] as Uint8Array).length
    })
    const journal = await openJournal({ dir, disk, segmentBytes: 2_000_000 })
    for (let first = 1; first <= total; first += 1000) {
      journal.append(payloads(first, first + 999))
      await journal.written()
    }
    bytesRead = 0
    for (const from of [1, 50_000, 99_990, 33_333]) {
      const records = await journal.read(from, 10)
      assert.equal(
        records.map(({ sequence, payload }) => [sequence, text(payload)]),
        payloads(from, from + 9).map((payload, i) => [from + i, text(payload)]),
      )
    }
    assert.ok(bytesRead < 4 * 600_000, `${bytesRead} bytes`)
    await journal.close()
    bytesRead = 0
    const again = await openJournal({ dir, disk })
    assert.is(again.last, total)
    assert.equal(
      (await again.read(50_000, 10)).map(({ sequence }) => sequence),
      Array.from({ length: 10 }, (_, i) => 50_000 + i),
    )
    // The newest file at open, one other when it is read first; never all.
    assert.ok(bytesRead < 5_000_000, `${bytesRead} bytes`)
    bytesRead = 0
    await again.read(50_100, 10)
    assert.ok(bytesRead < 600_000, `${bytesRead} bytes`)
    await again.close()
  }))

test('files roll by size, reads span them, and damage in an older one is found on read', () =>
  inFolder(async dir => {
    const journal = await openJournal({ dir, segmentBytes: 1000 })
    for (let first = 1; first <= 100; first += 5) {
      journal.append(payloads(first, first + 4))
      await journal.written()
    }
    await checkAll(journal, 1, 100)
    await checkAll(journal, 37, 100)
    await journal.close()
    const names = (await readdir(dir)).filter(name => name.startsWith('events-'))
    assert.ok(names.length > 5)
    for (const name of names) assert.ok((await stat(path.join(dir, name))).size <= 1000)
    // Retention drops files from the front.
    await rm(path.join(dir, 'events-1.log'))
    const rest = await openJournal({ dir, segmentBytes: 1000 })
    assert.ok(rest.first > 1)
    await checkAll(rest, rest.first, 100)
    assert.is((await rest.read(1, 1))[0]?.sequence, rest.first)
    await rest.close()
    const damaged = path.join(dir, `events-${rest.first}.log`)
    const bytes = await readFile(damaged)
    bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40)
    await writeFile(damaged, bytes)
    const last = await openJournal({ dir })
    assert.is(await codeOf(() => last.read(rest.first, 1)), 'journal_damaged')
    await checkAll(last, 60, 100)
    await last.close()
  }))

test('appends of one turn are one write, synced on request or after the delay', () =>
  inFolder(async dir => {
    const calls: string[] = []
    const disk = watchedDisk(call => {
      if (call.file.endsWith('.log') && (call.name === 'pwrite' || call.name === 'fsync')) calls.push(call.name)
    })
    const due: { fn: () => void; ms: number }[] = []
    const clock = {
      timeout: (ms: number, fn: () => void) => {
        const handle = due.push({ fn, ms })
        return { cancel: () => void due.splice(handle - 1, 1) }
      },
    }
    const journal = await openJournal({ dir, disk, clock })
    for (let i = 1; i <= 10; i++) journal.append(payloads(i, i))
    await journal.written()
    assert.equal(calls, ['pwrite'])
    assert.equal(
      due.map(({ ms }) => ms),
      [50],
    )
    due.shift()?.fn()
    await journal.sync()
    assert.equal(calls, ['pwrite', 'fsync'])
    journal.append(payloads(11, 11), { sync: true })
    await journal.sync()
    assert.equal(calls, ['pwrite', 'fsync', 'pwrite', 'fsync'])
    assert.equal(due, [])
    await journal.sync()
    await journal.close()
    assert.equal(calls, ['pwrite', 'fsync', 'pwrite', 'fsync'])
  }))

test('the unclean mark is on the disk before the first write', () =>
  inFolder(async dir => {
    await closed(dir, 3)
    const order: string[] = []
    const disk = watchedDisk(call => {
      order.push(`${call.name} ${path.basename(call.file)}`)
    })
    const journal = await openJournal({ dir, disk })
    order.length = 0
    journal.append(payloads(4, 4))
    await journal.written()
    const written = order.indexOf('pwrite events-1.log')
    const marked = [
      'pwrite .journal.json.tmp',
      'fsync .journal.json.tmp',
      'rename .journal.json.tmp',
      `fsyncDir ${path.basename(dir)}`,
    ]
    assert.equal(
      order.slice(0, written).filter(call => marked.includes(call)),
      marked,
    )
    await journal.close()
  }))

test('a record may have 16 MiB and not one byte more', () =>
  inFolder(async dir => {
    const journal = await openJournal({ dir })
    const large = new Uint8Array(LARGEST_PAYLOAD).fill(7)
    const tooLarge = new Uint8Array(LARGEST_PAYLOAD + 1)
    assert.is(await codeOf(() => journal.append([new Uint8Array(1), tooLarge])), 'journal_record_too_large')
    assert.is(journal.last, 0)
    assert.equal(journal.append([large]), [1])
    await journal.close()
    const again = await openJournal({ dir })
    const [record] = await again.read(1, 1)
    assert.ok(record !== undefined && Buffer.from(record.payload).equals(large))
    await again.close()
  }))

test('a full disk refuses appends, serves reads, and pending appends are written when there is space', () =>
  inFolder(async dir => {
    const disk = smallDisk()
    const journal = await openJournal({ dir, disk, segmentBytes: 1000 })
    journal.append(payloads(1, 20))
    await journal.sync()
    disk.left = 50
    journal.append(payloads(21, 24))
    assert.is(await codeOf(() => journal.sync()), 'disk_full')
    assert.is(await codeOf(() => journal.append(payloads(25, 25))), 'disk_full')
    await checkAll(journal, 1, 20)
    const written = journal.written()
    disk.left = Infinity
    await written
    journal.append(payloads(25, 90))
    await journal.sync()
    await checkAll(journal, 1, 90)
    disk.left = 10
    journal.append(payloads(91, 91))
    assert.is(await codeOf(() => journal.sync()), 'disk_full')
    await journal.close().catch(() => {})
    const again = await openJournal({ dir })
    await checkAll(again, 1, again.last)
    assert.ok(again.last >= 90)
    await again.close()
  }))

for (const name of ['pwrite', 'fsync'] as const) {
  test(`after a failed ${name} every append is rejected, and the next open recovers`, () =>
    inFolder(async dir => {
      let failing = false
      let calls = 0
      const disk = watchedDisk(call => {
        if (!failing || call.name !== name) return
        calls++
        throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
      })
      const journal = await openJournal({ dir, disk })
      journal.append(payloads(1, 2), { sync: true })
      await journal.sync()
      failing = true
      journal.append(payloads(3, 3), { sync: true })
      assert.is(await codeOf(() => journal.sync()), 'journal_failed')
      for (const use of [
        () => journal.written(),
        () => journal.append(payloads(4, 4)),
        () => journal.read(1, 1),
        () => journal.close(),
      ]) {
        assert.is(await codeOf(use), 'journal_failed')
      }
      assert.is(calls, 1)
      const again = await openJournal({ dir })
      assert.is(again.generation, 2)
      assert.ok(again.last >= 2)
      await checkAll(again, 1, again.last)
      await again.close()
    }))
}

test('no file is started and nothing is written after a failed preceding sync', () =>
  inFolder(async dir => {
    const calls: string[] = []
    let fail: (() => void) | undefined
    const disk = watchedDisk(call => {
      if (fail !== undefined) calls.push(call.name)
      if (call.name !== 'fsync' || !call.file.endsWith('.log')) return
      return new Promise((_, reject) => {
        fail = () => reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
      })
    })
    const journal = await openJournal({ dir, disk, segmentBytes: 1000 })
    journal.append(payloads(1, 5), { sync: true })
    while (fail === undefined) await new Promise(resolve => setImmediate(resolve))
    // Does not fit into the first file: it waits for the sync.
    journal.append([new Uint8Array(2000)])
    const written = codeOf(() => journal.written())
    for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
    fail()
    assert.is(await written, 'journal_failed')
    for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
    assert.equal(calls, [])
    assert.is(await codeOf(() => journal.close()), 'journal_failed')
  }))

test('new folders are on the disk before their journal', () =>
  inFolder(async folder => {
    const synced: string[] = []
    const opened = new Map<number, string>()
    const { open, sync } = asyncCalls
    asyncCalls.open = async (...args) => {
      const handle = await open(...args)
      opened.set(handle, path.relative(folder, args[0]))
      return handle
    }
    asyncCalls.sync = handle => {
      synced.push(opened.get(handle) ?? '')
      return sync(handle)
    }
    try {
      const journal = await openJournal({ dir: path.join(folder, 'a', 'b', 'c') })
      journal.append(payloads(1, 1), { sync: true })
      await journal.sync()
      // The names a, b and c, each in the folder above it; then the files in c.
      assert.equal(synced.slice(0, 3).sort(), ['', 'a', 'a/b'])
      assert.ok(synced.slice(3).includes('a/b/c'))
      await journal.close()
    } finally {
      Object.assign(asyncCalls, { open, sync })
    }
  }))

test.run()
