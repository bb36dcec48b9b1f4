import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { noteBytes, readNote } from '../../../../kernel/store/note.js'
import { openJournal } from '../../../../plugins/platform/journals/open.js'
import { typescript } from '../../../harness/run-typescript.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { checkAll, closed, payloads, text } from '../../../kernel/fixtures/journals.js'
import { codeOf, inFolder, watchedDisk } from '../../../kernel/store/harness.js'

const MIB = 2 ** 20

/** Makes the end unclean, as a kill does; `last` was synced. */
async function forgetClose(dir: string, last = 0): Promise<void> {
  const file = path.join(dir, 'journal.json')
  const { generation = 0 } = readNote<{ generation: number }>(await readFile(file)) ?? {}
  await writeFile(file, noteBytes({ generation, clean: false, last }))
}

const newest = async (dir: string): Promise<string> => {
  const first = (await readdir(dir)).map(name => Number(/\d+/.exec(name)?.[0] ?? 0)).sort((a, b) => b - a)[0]
  return path.join(dir, `events-${first}.log`)
}

/** In a folder, with chance; a failure names its seed. */
const withDice = (play: (dir: string, dice: Dice) => Promise<void>) =>
  forSeeds(1, seed => inFolder(dir => play(dir, new Dice(seed))))

test('a torn tail is cut at open, at any position', () =>
  withDice(async (dir, dice) => {
    await closed(dir, 40)
    const file = await newest(dir)
    const whole = await readFile(file)
    let generation = 1
    for (let round = 0; round < 40; round++) {
      const cut = round === 0 ? 0 : dice.upTo(whole.length)
      const garbage = round % 3 === 0 ? Buffer.alloc(1 + ((round * 7) % 50), round % 2 ? 0 : 0xff) : Buffer.alloc(0)
      await writeFile(file, Buffer.concat([whole.subarray(0, cut), garbage]))
      await forgetClose(dir)
      const journal = await openJournal({ dir })
      assert.is(journal.generation, ++generation)
      await checkAll(journal, 1, journal.last)
      // No record that was whole before the cut is missing.
      const left = (await stat(file)).size
      assert.ok(left <= cut && whole.subarray(0, left).equals(await readFile(file)))
      const next = left + 16 + whole.readUInt32LE(left)
      assert.ok(cut < next, `cut at ${cut}, ${left} left`)
      const { last } = journal
      journal.append(payloads(last + 1, last + 2))
      await journal.close()
      const again = await openJournal({ dir })
      assert.is(again.generation, generation)
      await checkAll(again, 1, last + 2)
      await again.close()
    }
  }))

test('a damaged journal is salvaged in pieces, searching a bounded distance', () =>
  inFolder(async dir => {
    const large = (fill: number) => Buffer.alloc(12 * MIB, fill)
    const journal = await openJournal({ dir })
    // One write goes into one file, whatever its size.
    journal.append([1, 2, 3, 4, 5].map(large))
    await journal.close()
    const file = await newest(dir)
    const whole = await open(file, 'r+')
    await whole.write(Buffer.of(0), 0, 1, 15 * MIB)
    await whole.truncate(2 ** 30)
    await whole.close()
    let [read, most] = [0, 0]
    const disk = watchedDisk(({ name, args }) => {
      if (name !== 'read') return
      const { length } = args[1] as Uint8Array
      read += length
      most = Math.max(most, length)
    })
    const rest = await openJournal({ dir, disk, intact: true })
    const found = (await rest.read(1, 10)).map(({ sequence, payload }) => [sequence, payload[0], payload.length])
    assert.equal(
      found,
      [1, 3, 4, 5].map(n => [n, n, 12 * MIB]),
    )
    assert.ok(read < 512 * MIB, `${read} bytes read`)
    assert.ok(most <= 40 * MIB, `${most} bytes at once`)
  }))

test('damage before the last synced record is an error with file and offset, and changes nothing', () =>
  withDice(async (dir, dice) => {
    await closed(dir, 40)
    const file = await newest(dir)
    const whole = await readFile(file)
    for (let round = 0; round < 40; round++) {
      const at = dice.upTo(whole.length)
      const damaged = Buffer.from(whole)
      damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << (round % 8)), at)
      await writeFile(file, damaged)
      await forgetClose(dir, 40)
      const error = await openJournal({ dir }).catch(thrown => thrown)
      assert.is(error.code, 'journal_damaged', `bit of byte ${at}`)
      assert.ok(error.message.includes(file), error.message)
      const offset = Number(/offset (\d+)/.exec(error.message)?.[1])
      assert.ok(offset <= at && at < offset + 16 + whole.readUInt32LE(offset), error.message)
      assert.ok((await readFile(file)).equals(damaged))
    }
  }))

test('a hole in the unsynced part is a torn tail, whatever valid records follow', () =>
  inFolder(async dir => {
    await closed(dir, 40)
    const file = await newest(dir)
    const whole = await readFile(file)
    const starts = [0]
    for (let at = 0; at < whole.length; starts.push(at)) at += 16 + whole.readUInt32LE(at)
    for (const [synced, hole] of [
      [30, 31],
      [30, 35],
      [0, 1],
      [12, 13],
    ] as const) {
      const damaged = Buffer.from(whole)
      damaged.fill(0, starts[hole - 1], starts[hole])
      await writeFile(file, damaged)
      await forgetClose(dir, synced)
      const journal = await openJournal({ dir })
      assert.is(journal.last, hole - 1)
      await checkAll(journal, 1, hole - 1)
      await journal.close()
      // The same hole in what was synced is damage.
      await writeFile(file, damaged)
      await forgetClose(dir, hole)
      assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged')
    }
  }))

test('the synced position is known after a kill without a close', () =>
  inFolder(async dir => {
    // Nothing is synced but what is asked for, however long the rest takes.
    const journal = await openJournal({ dir, syncDelayMs: 3_600_000 })
    journal.append(payloads(1, 10))
    await journal.sync()
    const file = await newest(dir)
    const whole = await readFile(file)
    journal.append(payloads(11, 12))
    await journal.written()
    await writeFile(file, whole.subarray(0, whole.length - 1))
    assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged')
    await writeFile(file, Buffer.concat([whole, Buffer.alloc(7, 1)]))
    const again = await openJournal({ dir })
    await checkAll(again, 1, 10)
    assert.is(again.generation, 2)
    await again.close()
    await journal.close().catch(() => {})
  }))

test('disk errors during the open or close of a journal have a code', () =>
  inFolder(async dir => {
    await closed(dir, 3)
    let failing = 'open'
    const disk = watchedDisk(call => {
      if (call.name === failing) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    })
    assert.is(await codeOf(() => openJournal({ dir, disk })), 'journal_failed')
    failing = 'rename'
    const journal = await openJournal({ dir, disk })
    failing = ''
    journal.append(payloads(4, 4))
    await journal.sync()
    failing = 'rename'
    assert.is(await codeOf(() => journal.close()), 'journal_failed')
    const again = await openJournal({ dir })
    assert.equal([again.last, again.generation], [4, 2])
    await again.close()
  }))

test('after a clean close a torn tail or a missing file is damage', () =>
  inFolder(async dir => {
    await closed(dir, 40)
    const file = await newest(dir)
    const whole = await readFile(file)
    for (const cut of [0, 1, 100, whole.length]) {
      await writeFile(file, Buffer.concat([whole.subarray(0, whole.length - cut), Buffer.alloc(cut === 0 ? 5 : 0)]))
      assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged', `cut ${cut}`)
    }
    await rm(file)
    assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged')
    await writeFile(file, whole)
    await writeFile(path.join(dir, 'journal.json'), '{')
    assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged')
    await rm(path.join(dir, 'journal.json'))
    assert.is(await codeOf(() => openJournal({ dir })), 'journal_damaged')
  }))

test('after kill -9 all synced records are present and the generation is raised, after a clean close it is not', () =>
  inFolder(async folder => {
    const dir = path.join(folder, 'journal')
    const script = fileURLToPath(new URL('../../../kernel/fixtures/journal-writer.ts', import.meta.url))
    let synced = 0
    for (let round = 1; round <= 3; round++) {
      const child = spawn(process.execPath, [...typescript, script, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
      let output = ''
      child.stdout.on('data', chunk => {
        output += chunk
        if (output.split('\n').length > 40 * round) child.kill('SIGKILL')
      })
      await once(child, 'exit')
      const lines = output
        .split('\n')
        .slice(0, -1)
        .map(line => line.split(' ').map(Number))
      assert.equal([...new Set(lines.map(([generation]) => generation))], [round])
      synced = lines.at(-1)?.[1] ?? 0
      for (const generation of [round + 1, round + 1]) {
        const journal = await openJournal({ dir })
        assert.is(journal.generation, generation)
        assert.ok(journal.last >= synced)
        const records = await journal.read(1, Infinity)
        assert.equal(
          records.map(({ payload }) => text(payload)),
          records.map((_, i) => `record ${i + 1}`),
        )
        assert.is(records.length, journal.last)
        await journal.close()
      }
    }
    assert.ok((await readdir(dir)).length > 2)
  }))

test.run()
