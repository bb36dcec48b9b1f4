import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Fault } from '../../../kernel/contract/errors.js'
import {
  openRegularFile,
  openRegularFileSync,
  readBounded,
  readRegularFile,
  readRegularFileSync,
} from '../../../kernel/kit/read-file.js'
import { hostileFiles } from '../../fixtures/hostile-files.js'
import { inFolder } from '../store/harness.js'

const MIB = 2 ** 20
const maxBytes = 16 * MIB

async function outcome(read: () => unknown): Promise<unknown> {
  try {
    return await read()
  } catch (error) {
    return error
  }
}

/** The asynchronous reading and the other one, called alike. */
const readings = [
  readRegularFile,
  async (...[at, options]: Parameters<typeof readRegularFile>) => readRegularFileSync(at, options),
]

for (const { name, refused, put } of hostileFiles) {
  test(`${name} does not block a reader and is reported by its path`, () =>
    inFolder(async folder => {
      const at = path.join(folder, 'file')
      const end = await put(at)
      for (const read of readings) {
        const before = process.memoryUsage().rss
        // More at once than there are threads for files: had one of them hung, the last would not come back.
        for (const found of await Promise.all(Array.from({ length: 8 }, () => outcome(() => read(at, { maxBytes }))))) {
          if (refused === 'none' && !(found instanceof Error)) continue
          if (refused === 'missing') assert.is(found, undefined)
          else {
            const { code, message, next } = found as Fault
            assert.is(code, refused === 'none' ? 'file_too_large' : refused)
            for (const text of [message, next]) assert.match(String(text), at)
          }
        }
        assert.ok(process.memoryUsage().rss - before < 512 * MIB)
      }
      end()
    }))
}

test('an unreadable file is reported by its path', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'file')
    writeFileSync(at, 'x')
    chmodSync(folder, 0o755)
    chmodSync(at, 0)
    const mine = process.geteuid?.()
    // The superuser reads it all the same.
    if (mine === 0) process.seteuid?.(65534)
    try {
      for (const read of readings) {
        const { code, message } = (await outcome(() => read(at, { maxBytes }))) as Fault
        assert.is(code, 'file_unreadable')
        assert.match(message, at)
      }
    } finally {
      if (mine === 0) process.seteuid?.(0)
    }
  }))

test('a file is read up to the limit and no byte further', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'file')
    for (const size of [0, 1, 4095, 4096, 4097, 100_000]) {
      const bytes = Buffer.alloc(size, 'ab')
      writeFileSync(at, bytes)
      assert.ok(bytes.equals((await readRegularFile(at, { maxBytes: size })) as Buffer))
      assert.ok(bytes.equals(readRegularFileSync(at, { maxBytes: size }) as Buffer))
      if (size === 0) continue
      const found = (await outcome(() => readRegularFile(at, { maxBytes: size - 1 }))) as { code: string }
      assert.is(found.code, 'file_too_large')
    }
  }))

test('a file with a reported size of zero is bounded by its bytes', async () => {
  const whole = readRegularFileSync('/proc/self/maps', { maxBytes })
  assert.ok(whole && whole.length > 4096)
  for (const read of [readRegularFile, readRegularFileSync]) {
    const found = (await outcome(() => read('/proc/self/maps', { maxBytes: 4096 }))) as { code: string }
    assert.is(found.code, 'file_too_large')
  }
})

test('a file that grows during the read is read to its end or refused at the limit', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'file')
    writeFileSync(at, 'x'.repeat(5000))
    for (const [bound, grown] of [
      [20_000, 15_000],
      [10_000, undefined],
    ] as const) {
      writeFileSync(at, 'x'.repeat(5000))
      const handle = await openRegularFile(at)
      const reading = outcome(() => readBounded(handle, at, bound))
      // The size is looked at before this turn ends, and the first read comes back after it.
      appendFileSync(at, 'y'.repeat(10_000))
      const found = await reading
      closeSync(handle)
      if (grown) assert.is((found as Buffer).length, grown)
      else assert.is((found as { code: string }).code, 'file_too_large')
    }
  }))

test('a file removed during the read is read completely', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'file')
    writeFileSync(at, 'x'.repeat(5000))
    const handle = await openRegularFile(at)
    const reading = readBounded(handle, at, maxBytes)
    unlinkSync(at)
    assert.is((await reading).length, 5000)
    closeSync(handle)
  }))

test('a symbolic link is reported as such where links are refused', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'link')
    writeFileSync(path.join(folder, 'file'), 'x')
    symlinkSync('file', at)
    assert.is(String(readRegularFileSync(at, { maxBytes })), 'x')
    for (const read of [readRegularFile, readRegularFileSync]) {
      const found = (await outcome(() => read(at, { maxBytes, links: 'refuse' }))) as Error
      assert.match(found.message, 'is a symbolic link, not a regular file')
    }
  }))

test('opening to write creates a file, appends to one, and does not wait for the reader of a pipe', () =>
  inFolder(async folder => {
    const at = path.join(folder, 'log')
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT
    for (const text of ['a', 'b']) {
      const handle = openRegularFileSync(at, { flags })
      writeSync(handle, text)
      closeSync(handle)
    }
    assert.is(String(readRegularFileSync(at, { maxBytes })), 'ab')
    unlinkSync(at)
    execFileSync('mkfifo', [at])
    assert.is(((await outcome(() => openRegularFileSync(at, { flags }))) as { code: string }).code, 'file_not_regular')
    assert.is(((await outcome(() => openRegularFile(at, { flags }))) as { code: string }).code, 'file_not_regular')
  }))

test.run()
