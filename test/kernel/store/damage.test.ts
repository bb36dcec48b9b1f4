// proof: files that are damaged, also at random
import { execFileSync } from 'node:child_process'
import { cp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { crc32 } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { noteBytes, readNote } from '../../../kernel/store/note.js'
import { firstSeed } from '../../proofs/library/seed.js'
import { damagedJournal, damagedStore } from '../../proofs/store/damage.js'
import { codeOf, inFolder, openAt, rowsById, watchedDisk, writeThree } from './harness.js'

// What the proof has found, one case each; `npm run prove:store` looks for more.

/** Runs `use` with the files of a store of ten ids as a kill leaves them: all in the log, nothing closed. */
function withKilled(use: (folder: string) => Promise<void>): Promise<void> {
  return inFolder(async folder =>
    inFolder(async copy => {
      const store = await openAt(folder, { autocheckpointPages: 100_000 })
      for (let id = 0; id < 10; id++) await writeThree(store, id)
      await cp(folder, copy, { recursive: true })
      await store.close()
      await use(copy)
    }),
  )
}

/** Opens what was damaged: the code of the error, or how many ids are there. */
async function opened(folder: string): Promise<unknown> {
  return codeOf(async () => {
    const store = await openAt(folder)
    const ids = rowsById(store).size
    await store.close()
    throw Object.assign(new Error('opened'), { code: ids })
  })
}

test('damage in the acknowledged part of the log is an error and changes nothing; a torn tail is cut', () =>
  withKilled(async folder => {
    const wal = path.join(folder, 'svc.db-wal')
    const whole = await readFile(wal)
    const flipped = (at: number): Buffer => {
      const copy = Buffer.from(whole)
      copy.writeUInt8(copy.readUInt8(at) ^ 4, at)
      return copy
    }
    for (const bytes of [
      flipped(5),
      flipped(20),
      flipped(33),
      flipped(5000),
      flipped(whole.length - 1),
      whole.subarray(0, whole.length - 1),
      whole.subarray(0, 32),
      Buffer.from(whole).fill(0, 4096, 4608),
      Buffer.alloc(0),
    ]) {
      await writeFile(wal, bytes)
      assert.is(await opened(folder), 'store_damaged')
      assert.ok((await readFile(wal)).equals(bytes))
    }
    await rm(wal)
    assert.is(await opened(folder), 'store_damaged')
    await writeFile(wal, Buffer.concat([whole, Buffer.alloc(5000, 7)]))
    assert.is(await opened(folder), 10)
  }))

test('a database cut beside its log is an error: SQLite fills the gap with zeros', () =>
  withKilled(async folder => {
    await truncate(path.join(folder, 'svc.db'), 1000)
    assert.is(await opened(folder), 'store_damaged')
  }))

test('a log that another program checkpointed and removed is no damage', () =>
  withKilled(async folder => {
    execFileSync('sqlite3', ['svc.db', 'PRAGMA wal_checkpoint(TRUNCATE)'], { cwd: folder })
    assert.is(await opened(folder), 10)
  }))

test('a partly written mark leaves the previous one, and a missing mark is no error', () =>
  withKilled(async folder => {
    const mark = path.join(folder, 'svc.db-mark')
    const bytes = await readFile(mark)
    const { number = 0 } = readNote<{ number: number }>(bytes) ?? {}
    bytes.write('{"other', (number % 2) * 512)
    assert.is(readNote<{ number: number }>(bytes)?.number, number - 1)
    await writeFile(mark, bytes)
    assert.is(await opened(folder), 10)
    await rm(mark)
    assert.is(await opened(folder), 10)
    assert.is(readNote<{ crc: number }>(noteBytes({ crc: 7 }))?.crc, 7)
  }))

test('the mark is synced before the log restarts and with every 64th sync', () =>
  inFolder(async folder => {
    const calls: string[] = []
    const disk = watchedDisk(({ name, file, args }) => {
      if (name === 'fsync') calls.push(`sync ${path.basename(file)}`)
      if (name === 'pwrite' && file.endsWith('-wal') && args[2] === 0) calls.push('log begins')
    })
    const store = await openAt(folder, { disk, autocheckpointPages: 10 })
    for (let id = 0; id < 200; id++) await writeThree(store, id)
    await store.close()
    const begins = calls.flatMap((call, at) => (call === 'log begins' ? [at] : []))
    assert.ok(begins.length > 5)
    for (const at of begins) assert.is(calls[at - 1], 'sync svc.db-mark')
    const marks = calls.filter(call => call === 'sync svc.db-mark').length - begins.length
    assert.ok(marks >= 3 && marks <= 12, `${marks} of ${calls.length}`)
  }))

test('an unchanged database after an orderly close is opened without a structure check', () =>
  inFolder(async folder => {
    const [file, mark] = [path.join(folder, 'svc.db'), path.join(folder, 'svc.db-mark')]
    const store = await openAt(folder)
    for (let id = 0; id < 10; id++) await writeThree(store, id)
    await store.close()
    const sealed = readNote<{ bytes: number; crc: number }>(await readFile(mark))
    const whole = await readFile(file)
    assert.equal([sealed?.bytes, sealed?.crc], [whole.length, crc32(whole)])
    assert.is(await opened(folder), 10)

    // A page that is on no list and in no tree: only the check finds it.
    const lost = Buffer.concat([whole, Buffer.alloc(4096)])
    lost.writeUInt32BE(lost.readUInt32BE(28) + 1, 28)
    await writeFile(file, lost)
    assert.is(await opened(folder), 'store_damaged')
    const note = (crc: number) => writeFile(mark, noteBytes({ bytes: lost.length, crc }, 1))
    await note(crc32(lost) ^ 1)
    assert.is(await opened(folder), 'store_damaged')
    await note(crc32(lost))
    assert.is(await opened(folder), 10)
  }))

test('a killed store is not sealed', () =>
  inFolder(async folder => {
    const store = await openAt(folder)
    await writeThree(store, 1)
    await store.close()
    const again = await openAt(folder)
    await writeThree(again, 2)
    const note = readNote<{ header?: string }>(await readFile(path.join(folder, 'svc.db-mark')))
    assert.type(note?.header, 'string')
    await again.close()
    assert.is(await opened(folder), 2)
  }))

test('random damage is an error or loses nothing', async () => {
  const seed = firstSeed()
  for (let index = 0; index < 12; index++) {
    assert.is(await damagedStore(seed, index), undefined, `seed ${seed}, case ${index}`)
    assert.is(await damagedJournal(seed, index), undefined, `seed ${seed}, case ${index}`)
  }
})

test.run()
