// The process that is killed, or whose disk fails: `child.mjs store|journal|kernel <folder> <seed> <round> [limit] [fault]`.
// It tells what was acknowledged, a number a line, and `refused` for what a full disk refused; a fault is
// `<call>:<EIO|ENOSPC|full|short>:<n>`, `full` being three times ENOSPC.
import fs from 'node:fs'
import path from 'node:path'
import { definePlugin, type PluginKernel } from '../../../kernel/plugin.js'
import { type Disk, systemDisk } from '../../../kernel/store/disk.js'
import { openStore, type Store } from '../../../kernel/store/index.js'
import { base } from '../../../plugins/index.js'
import { openJournal } from '../../../plugins/platform/journals/open.js'
import { chance } from '../library/chance.js'
import { injected } from './fault.js'
import { lastOf, perform, prepare, recordOf, TABLES } from './model.js'
import { wrapDisk } from './power-disk.js'

const [mode, folder = '', seedText, roundText, limitText = 'Infinity'] = process.argv.slice(2)
const seed = Number(seedText)
const limit = Number(limitText)
const random = chance(seed, 'child', Number(roundText))
const tell = (line: string | number): boolean => process.stdout.write(`${line}\n`)

const disk: Disk = wrapDisk(systemDisk(), (name, args, call) =>
  injected.call(name, call, () =>
    fs.writeSync(args[0] as number, (args[1] as Uint8Array).subarray(0, 7), 0, 7, args[2] as number),
  ),
)

/** Runs transactions from where the store stands, several at a time; returns at the limit. */
async function work(db: Pick<Store, 'db'>): Promise<void> {
  tell('open')
  let n = lastOf(db)
  const end = n + limit
  const lane = async (): Promise<void> => {
    while (n < end) {
      const mine = ++n
      await perform(db, seed, mine).catch(error => afterRefusal(db, mine, error))
      tell(mine)
    }
  }
  await Promise.all(Array.from({ length: 1 + random.int(8) }, lane))
}

/** What a full disk refuses is done again when there is room, unless it was under way: then it is on the disk by then. */
async function afterRefusal({ db }: Pick<Store, 'db'>, n: number, error: { code?: unknown }): Promise<void> {
  if (error.code !== 'disk_full') throw error
  tell('refused')
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 10))
    try {
      if (db.row('SELECT 1 FROM proof_change WHERE n = ?', [n])) return await db.durable()
      return await perform({ db }, seed, n)
    } catch (again) {
      if ((again as { code?: unknown }).code !== 'disk_full') throw again
    }
  }
}

async function runStore(): Promise<void> {
  const file = path.join(folder, 'svc.db')
  const store = await openStore({ path: file, disk, now: () => 0, autocheckpointPages: 4 + random.int(30) })
  await untilRoom(() => prepare(store))
  const error = await Promise.race([work(store), store.failed]).catch(() => store.failed)
  if (error === undefined) await untilRoom(() => store.checkpoint())
  await store.close()
  if (error !== undefined) throw error
}

async function runJournal(): Promise<void> {
  const journal = await openJournal({ dir: path.join(folder, 'journal'), disk, segmentBytes: 6000, syncDelayMs: 3 })
  tell(`generation ${journal.generation}`)
  tell('open')
  for (let left = limit; left > 0; left--) {
    const records = Array.from({ length: 1 + random.int(4) }, (_, i) =>
      recordOf(seed, journal.generation, journal.last + 1 + i),
    )
    const sync = random() < 0.3
    await untilRoom(() => journal.append(records, { sync }))
    if (random() < 0.3) await journal.written()
    else {
      const { last } = journal
      await untilRoom(() => journal.sync())
      tell(last)
    }
  }
  // A close waits for no room. What was acknowledged is in the files, and the next open finds an unclean end.
  await journal.close().catch(error => {
    if (error.code !== 'disk_full') throw error
    tell('refused')
  })
}

async function untilRoom<T>(use: () => T): Promise<Awaited<T>> {
  for (;;) {
    try {
      return await use()
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'disk_full') throw error
      tell('refused')
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

/** The whole kernel, its disk being the system's: the calls of Node on the files of the database are what fails. */
async function runKernel(): Promise<void> {
  const { createKernel } = await import('../../../kernel/kernel.js')
  let plugin: PluginKernel<Record<string, never>> | undefined
  const proof = definePlugin({
    name: 'proof',
    version: '1.0.0',
    requires: {},
    service: async () =>
      class {
        constructor(kernel: PluginKernel<Record<string, never>>) {
          plugin = kernel
        }
      },
  }).surface({ tables: TABLES })
  const kernel = await createKernel({ home: folder, plugins: [...base, proof], log: () => {} })
  const { failed } = kernel
  const error = await Promise.race([work(plugin as PluginKernel<Record<string, never>>), failed]).catch(() => failed)
  const [wrong = error] = await kernel.close()
  if (wrong !== undefined) throw wrong
}

tell('begun')
try {
  await (mode === 'journal' ? runJournal() : mode === 'kernel' ? runKernel() : runStore())
  tell('complete')
} catch (error) {
  process.stderr.write(`${error instanceof Error && 'code' in error ? error.code : ''} ${error}\n`)
  process.exitCode = 1
}
if (injected.happened) tell(`after ${injected.after}`)
