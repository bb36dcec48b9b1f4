import { cpSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, ms } from './measure.js'
import type { Row } from './report.js'
import type { StoreProcess } from './store-process.js'

const TRANSACTIONS = 100_000

/** How long the store takes to open after many transactions and a kill, and how long a checkpoint blocks the event loop. */
export async function benchRecovery(context: Context): Promise<void> {
  const sides = context.native ? ['ours', 'native'] : ['ours']
  const start = (side: string, folder: string) =>
    Child.start<StoreProcess>(context.program('store-process'), [side, folder, context.bench])
  const rows = [await reopening(context, sides, start)]
  for (const mb of [10, 100]) rows.push(await checkpointing(context, sides, start, mb))
  context.report.section('Store, recovery and checkpoints', rows)
}

type Start = (side: string, folder: string) => Child<StoreProcess>

async function reopening({ temp, quick }: Context, sides: readonly string[], start: Start): Promise<Row> {
  for (const side of sides) {
    const child = start(side, path.join(temp, `reopen-${side}`))
    await child.call('prepare')
    await child.call('transactions', TRANSACTIONS)
    await child.kill()
  }
  let copies = 0
  const reopen = (side: string) => async () => {
    const folder = path.join(temp, `reopen-${side}-${++copies}`)
    cpSync(path.join(temp, `reopen-${side}`), folder, { recursive: true })
    const child = start(side, folder)
    const { took, rows } = await child.call('reopen')
    await child.kill()
    if (rows !== TRANSACTIONS / 2) throw new Error(`${side} lost ${TRANSACTIONS / 2 - rows} acknowledged transactions`)
    return took
  }
  const [ours = [], native] = (await inTurn(quick ? 2 : 7, sides.map(reopen))).map(median)
  return {
    what: `reopen after ${TRANSACTIONS.toLocaleString('en')} transactions and a kill`,
    ours: ms(ours as number),
    ...(native !== undefined && { baseline: `better-sqlite3 with quick_check: ${ms(native)}` }),
    value: ours as number,
    target: { atMost: 300, unit: 'ms' },
  }
}

async function checkpointing(context: Context, sides: readonly string[], start: Start, mb: number): Promise<Row> {
  const children = sides.map(side => start(side, path.join(context.temp, `checkpoint-${mb}-${side}`)))
  for (const child of children) await child.call('grow', mb)
  const rounds = context.quick ? 5 : 15
  const results = await inTurn(
    rounds,
    children.map(child => () => child.call('checkpoint', mb)),
  )
  for (const child of children) await child.kill()
  const [ours, native] = results.map(list => ({
    stall: median(list.map(one => one.stall)),
    worst: Math.max(...list.map(one => one.stall)),
    took: median(list.map(one => one.took)),
  }))
  const stall = ours?.stall ?? 0
  return {
    what: `checkpoint of 1000 pages, ${mb} MB: the loop stands still`,
    ours: `${ms(stall)}, at worst ${ms(ours?.worst ?? 0)}, on the disk after ${ms(ours?.took ?? 0)}`,
    ...(native && { baseline: `better-sqlite3: ${ms(native.stall)}`, ratio: stall / native.stall }),
    value: stall,
    target: { atMost: 10, unit: 'ms' },
  }
}
