// A process with one journal: node journal-process.js FOLDER. Beside it the same bytes in a plain file, without checksums.
import { closeSync, fdatasync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Journal } from '../../plugins/platform/journals/api.js'
import { openJournal } from '../../plugins/platform/journals/open.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'

/** Records a second, and the longest gap of the event loop in milliseconds. */
export interface Throughput {
  readonly rate: number
  readonly gap: number
}

const [folder = ''] = process.argv.slice(2)
const plain = path.join(folder, '..', 'plain')
const RECORD_BYTES = 200
const BATCH = 64
const PAGE = 1000
const payloads = Array.from({ length: BATCH }, (_, i) => Buffer.alloc(RECORD_BYTES, 65 + (i % 26)))
const batchBytes = Buffer.alloc(BATCH * (RECORD_BYTES + 16))

function rateOf(count: number, began: number): number {
  return (count * 1000) / (performance.now() - began)
}

const handlers = {
  /** A new journal: appends in batches, each told to readers once it is written, and all synced in the end. */
  async append(name: string, count: number): Promise<Throughput> {
    const journal = await openJournal({ dir: path.join(folder, name) })
    const longest = watchLoop()
    const began = performance.now()
    for (let done = 0; done < count; done += BATCH) {
      journal.append(payloads)
      await journal.written()
    }
    await journal.sync()
    const rate = rateOf(count, began)
    const gap = longest()
    await journal.close()
    return { rate, gap }
  },
  async replay(name: string): Promise<Throughput> {
    const journal = await openJournal({ dir: path.join(folder, name) })
    const longest = watchLoop()
    const began = performance.now()
    let next = 1
    while (next <= journal.last) {
      const records = await journal.read(next, PAGE)
      next = (records.at(-1)?.sequence ?? Number.POSITIVE_INFINITY) + 1
    }
    const result = { rate: rateOf(journal.last, began), gap: longest() }
    await journal.close()
    return result
  },
  /** Milliseconds to open it, and to read its last records. */
  async open(name: string): Promise<{ open: number; tail: number; last: number }> {
    const began = performance.now()
    const journal: Journal = await openJournal({ dir: path.join(folder, name) })
    const opened = performance.now()
    await journal.read(journal.last - 99, 100)
    const result = { open: opened - began, tail: performance.now() - opened, last: journal.last }
    await journal.close()
    return result
  },
  async appendPlain(count: number): Promise<Throughput> {
    const file = openSync(plain, 'w')
    const began = performance.now()
    for (let done = 0; done < count; done += BATCH) {
      writeSync(file, batchBytes)
      await new Promise(resolve => setImmediate(resolve))
    }
    await promisify(fdatasync)(file)
    const rate = rateOf(count, began)
    closeSync(file)
    return { rate, gap: 0 }
  },
  readPlain(count: number): Throughput {
    const file = openSync(plain, 'r')
    fdatasyncSync(file)
    const began = performance.now()
    const page = Buffer.alloc(PAGE * (RECORD_BYTES + 16))
    while (readSync(file, page) > 0);
    const rate = rateOf(count, began)
    closeSync(file)
    return { rate, gap: 0 }
  },
}

export type JournalProcess = typeof handlers

answer(handlers)
