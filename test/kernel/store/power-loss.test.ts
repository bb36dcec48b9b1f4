import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inFolder, openAt, rowsById, watchedDisk, writeThree } from './harness.js'

/** What reached the disk, in order, and where acknowledgements lie between. */
type Traced =
  | { kind: 'write'; file: string; offset: number; bytes: Buffer }
  | { kind: 'truncate'; file: string; size: number }
  | { kind: 'sync'; file: string }
  | { kind: 'acknowledged'; id: number }

const SECTOR = 512

/** Repeatable chance (mulberry32). */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Run {
  readonly start: Buffer
  readonly trace: readonly Traced[]
}

/** A run of a store over many small checkpoints: what the database was before, and what reached the disk. */
function recordRun(): Promise<Run> {
  return inFolder(async folder => {
    await (await openAt(folder)).close()
    const start = await readFile(path.join(folder, 'svc.db'))
    const trace: Traced[] = []
    const disk = watchedDisk(({ name, file: whole, args }) => {
      const file = path.basename(whole)
      if (name === 'pwrite') {
        trace.push({ kind: 'write', file, offset: args[2] as number, bytes: Buffer.from(args[1] as Uint8Array) })
      }
      if (name === 'truncate') trace.push({ kind: 'truncate', file, size: args[1] as number })
      if (name === 'fsync') trace.push({ kind: 'sync', file })
    })
    const store = await openAt(folder, { disk, autocheckpointPages: 12 })
    let id = 0
    const writer = async () => {
      while (id < 120) {
        const mine = id++
        await writeThree(store, mine, String.fromCharCode(97 + (mine % 26)).repeat((mine * 97) % 1500))
        trace.push({ kind: 'acknowledged', id: mine })
      }
    }
    await Promise.all([writer(), writer(), writer()])
    await store.close()
    return { start, trace }
  })
}

/** The files as power loss after `count` steps may leave them: what was synced, and some sectors of the rest. */
function afterLoss({ start, trace }: Run, count: number, random: () => number): Map<string, Buffer> {
  const files = new Map([['svc.db', start]])
  const lastSync = new Map<string, number>()
  for (const [at, step] of trace.slice(0, count).entries()) if (step.kind === 'sync') lastSync.set(step.file, at)
  for (const [at, step] of trace.slice(0, count).entries()) {
    if (step.kind === 'acknowledged' || step.kind === 'sync') continue
    const arrives = () => at < (lastSync.get(step.file) ?? -1) || random() < 0.5
    let content = files.get(step.file) ?? Buffer.alloc(0)
    if (step.kind === 'truncate') {
      if (arrives()) content = resized(content, step.size)
    } else {
      content = Buffer.from(content)
      const end = step.offset + step.bytes.length
      for (let from = step.offset, to = from; from < end; from = to) {
        to = Math.min(end, (Math.floor(from / SECTOR) + 1) * SECTOR)
        if (!arrives()) continue
        if (content.length < to) content = resized(content, to)
        content.set(step.bytes.subarray(from - step.offset, to - step.offset), from)
      }
    }
    files.set(step.file, content)
  }
  return files
}

function resized(content: Buffer, size: number): Buffer {
  return Buffer.concat([content.subarray(0, size), Buffer.alloc(Math.max(0, size - content.length))])
}

/** What is wrong after recovery from such a state; undefined when all acknowledged rows are there and all is whole. */
function lossOf(run: Run, count: number, random: () => number): Promise<string | undefined> {
  return inFolder(async folder => {
    for (const [name, bytes] of afterLoss(run, count, random)) await writeFile(path.join(folder, name), bytes)
    const acknowledged = run.trace.slice(0, count).flatMap(step => (step.kind === 'acknowledged' ? [step.id] : []))
    try {
      const store = await openAt(folder)
      const rows = rowsById(store)
      const check = store.db.rows('SELECT * FROM pragma_integrity_check')
      await store.close()
      if (String(check) !== 'ok') return `integrity: ${check}`
      if (acknowledged.some(id => rows.get(id) !== 3)) return 'an acknowledged row is missing'
      return [...rows.values()].some(n => n !== 3) ? 'a transaction is torn' : undefined
    } catch (error) {
      return String(error)
    }
  })
}

test('after power loss at any point all that was acknowledged is there; without the syncs of the database it is not', async () => {
  const run = await recordRun()
  const random = chance(20)
  const states = Array.from({ length: 60 }, () => Math.floor(random() * run.trace.length))
  assert.ok(run.trace.filter(step => step.kind === 'sync' && step.file === 'svc.db').length > 10)
  for (const count of states) assert.is(await lossOf(run, count, random), undefined, `after step ${count}`)
  const mutant = { ...run, trace: run.trace.filter(step => step.kind !== 'sync' || step.file !== 'svc.db') }
  let lost: string | undefined
  for (const count of states) lost ??= await lossOf(mutant, Math.min(count, mutant.trace.length), random)
  assert.type(lost, 'string')
})

test.run()
