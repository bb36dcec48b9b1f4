// A process with one database in a folder: node store-process.js ours|native FOLDER BENCH-FOLDER.
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { openStore, type Store } from '../../kernel/store/index.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'
import { median } from './measure.js'
import { type NativeDatabase, openNative } from './native.js'
import { nativeUnits, ourUnits, SCHEMA, type Workload } from './workloads.js'

/** How one slice of time went: units a second, their median in milliseconds, the longest gap of the event loop. */
export interface Slice {
  readonly rate: number
  readonly p50: number
  readonly gap: number
}

/** How long a checkpoint of some pages blocked the event loop, and how long it took; milliseconds. */
export interface Checkpoint {
  readonly stall: number
  readonly took: number
}

const [side, folder = '', bench = ''] = process.argv.slice(2)
const file = path.join(folder, 'svc.db')
const COUNT = 'SELECT count(*) AS n FROM bench_event'
const GROW = 'INSERT INTO bench_note (id, version, body) VALUES (?, 1, ?)'
const TOUCH = 'UPDATE bench_note SET version = version + 1 WHERE rowid = ?'
const DIRTY_PAGES = 1000
const ROWS_A_MB = 800
/** Each step of an order that never hits the same page twice in a thousand. */
const STRIDE = 7919

async function rated(until: number, writers: number, unit: () => Promise<void>): Promise<Slice> {
  const times: number[] = []
  const longest = watchLoop()
  const began = performance.now()
  const writer = async () => {
    while (performance.now() < until) {
      const start = performance.now()
      await unit()
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: writers }, writer))
  return { rate: (times.length * 1000) / (performance.now() - began), p50: median(times), gap: longest() }
}

function ours() {
  let store: Store
  const units = ourUnits()
  const open = async (autocheckpointPages?: number) => {
    mkdirSync(folder, { recursive: true })
    store = await openStore({ path: file, now: Date.now, ...(autocheckpointPages && { autocheckpointPages }) })
  }
  return {
    async prepare(): Promise<void> {
      await open()
      store.migrate('bench', [{ id: '001', sql: SCHEMA }])
      await store.db.tx(units.fill)
    },
    run(workload: Workload, writers: number, ms: number): Promise<Slice> {
      const { db } = store
      const write = workload === 'list' ? undefined : units[workload]
      return rated(performance.now() + ms, writers, async () => {
        if (write !== undefined) return db.tx(write)
        units.list(db)
        // As before every reply: what was read may not be on the disk yet.
        await db.durable()
      })
    },
    /** Half upserts, half events, many at once. */
    async transactions(count: number): Promise<void> {
      for (let done = 0; done < count; done += 500) {
        const some = Array.from({ length: 500 }, (_, i) => store.db.tx(i % 2 === 0 ? units.upsert : units.event))
        await Promise.all(some)
      }
    },
    async reopen(): Promise<{ took: number; rows: number }> {
      const began = performance.now()
      await open()
      return { took: performance.now() - began, rows: Number(store.db.row(COUNT)?.[0]) }
    },
    async grow(mb: number): Promise<void> {
      await open(1_000_000)
      store.migrate('bench', [{ id: '001', sql: SCHEMA }])
      for (let done = 0; done < mb; done += 5) {
        await store.db.tx(t => {
          for (let i = 0; i < 5 * ROWS_A_MB; i++) t.run(GROW, [`${done}-${i}`, 'x'.repeat(1024)])
        })
        await store.checkpoint()
      }
    },
    async checkpoint(mb: number): Promise<Checkpoint> {
      await store.db.tx(t => {
        for (let i = 0; i < DIRTY_PAGES; i++) t.run(TOUCH, [1 + ((i * STRIDE) % (mb * ROWS_A_MB))])
      })
      const longest = watchLoop()
      await new Promise(resolve => setTimeout(resolve, 20))
      longest()
      const began = performance.now()
      const done = store.checkpoint()
      const blocked = performance.now() - began
      await done
      const elapsed = performance.now() - began
      await new Promise(resolve => setTimeout(resolve, 5))
      return { stall: Math.max(blocked, longest()), took: elapsed }
    },
    close: () => store.close(),
  }
}

function native() {
  let db: NativeDatabase
  let units: ReturnType<typeof nativeUnits>
  const open = (schema: boolean) => {
    mkdirSync(folder, { recursive: true })
    db = openNative(bench, file)
    if (schema) db.exec(SCHEMA)
    units = nativeUnits(db)
  }
  return {
    prepare(): void {
      open(true)
      db.transaction(units.fill).immediate()
    },
    /** `batch` units in each transaction; waits for nothing, so nothing is gained by more than one writer. */
    run(workload: Workload, batch: number, ms: number): Slice {
      const unit = units[workload]
      const transaction = db.transaction(() => {
        for (let i = 0; i < batch; i++) unit()
      })
      const write = workload === 'list' ? unit : () => transaction.immediate()
      const each = workload === 'list' ? 1 : batch
      const times: number[] = []
      const began = performance.now()
      for (let start = began; start < began + ms; ) {
        write()
        const end = performance.now()
        times.push(end - start)
        start = end
      }
      return { rate: (times.length * each * 1000) / (performance.now() - began), p50: median(times), gap: 0 }
    },
    transactions(count: number): void {
      // How they came there is not what is measured.
      db.pragma('synchronous = OFF')
      const [upsert, event] = [db.transaction(units.upsert), db.transaction(units.event)]
      for (let done = 0; done < count; done += 2) {
        upsert.immediate()
        event.immediate()
      }
    },
    reopen(): { took: number; rows: number } {
      const began = performance.now()
      db = openNative(bench, file)
      db.pragma('quick_check(1)')
      return { took: performance.now() - began, rows: Number(db.prepare(COUNT).pluck().get()) }
    },
    grow(mb: number): void {
      open(true)
      db.pragma('wal_autocheckpoint = 1000000')
      const insert = db.prepare(GROW)
      for (let done = 0; done < mb; done += 5) {
        db.transaction(() => {
          for (let i = 0; i < 5 * ROWS_A_MB; i++) insert.run(`${done}-${i}`, 'x'.repeat(1024))
        }).immediate()
        db.pragma('wal_checkpoint(TRUNCATE)')
      }
    },
    checkpoint(mb: number): Checkpoint {
      const touch = db.prepare(TOUCH)
      db.transaction(() => {
        for (let i = 0; i < DIRTY_PAGES; i++) touch.run(1 + ((i * STRIDE) % (mb * ROWS_A_MB)))
      }).immediate()
      const began = performance.now()
      db.pragma('wal_checkpoint(TRUNCATE)')
      const elapsed = performance.now() - began
      return { stall: elapsed, took: elapsed }
    },
    close: () => db.close(),
  }
}

export type StoreProcess = ReturnType<typeof ours>

answer(side === 'ours' ? ours() : native())
