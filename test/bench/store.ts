import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row, Target } from './report.js'
import type { Slice, StoreProcess } from './store-process.js'
import { WORKLOADS, type Workload } from './workloads.js'

const NAMES: Record<Workload, string> = {
  upsert: '1 KB upsert with version check',
  claim: 'claim among 10,000',
  list: 'list 50 of 10,000',
  event: '200-byte event',
}
/** Against better-sqlite3 with FULL and one transaction a commit, by the number of writers. */
const TARGETS: Record<Workload, Readonly<Record<number, number>>> = {
  upsert: { 1: 0.5, 16: 2.2 },
  claim: { 1: 0.5, 16: 3.5 },
  list: { 1: 1, 16: 1, 128: 1 },
  event: { 1: 0.5, 16: 3.5 },
}
const GAP: Target = { atMost: 50, unit: 'ms' }

/** The store under four workloads, each in turn with better-sqlite3, every database in a process of its own. */
export async function benchStore(context: Context): Promise<void> {
  const { report, quick, bench } = context
  const start = async (side: string) => {
    const folder = path.join(context.temp, `store-${side}`)
    const child = Child.start<StoreProcess>(context.program('store-process'), [side, folder, bench])
    await child.call('prepare')
    return child
  }
  const ours = await start('ours')
  const native = context.native ? await start('native') : undefined
  const [rounds, length] = quick ? [2, 100] : [7, 300]
  const rows: Row[] = []
  for (const workload of WORKLOADS) {
    let gap = 0
    for (const writers of [1, 16, 128]) {
      const batched = writers > 1 && workload !== 'list'
      const run = [
        () => ours.call('run', workload, writers, length),
        ...(native ? [() => native.call('run', workload, 1, length)] : []),
        ...(native && batched ? [() => native.call('run', workload, writers, length)] : []),
      ]
      // The first round warms up.
      const [our = [], single, batch] = (await inTurn(rounds + 1, run)).map(slices => slices.slice(1))
      gap = Math.max(gap, ...our.map(slice => slice.gap))
      const what = `${NAMES[workload]}, ${writers} ${workload === 'list' ? 'reader' : 'writer'}${writers > 1 ? 's' : ''}`
      const target = TARGETS[workload][writers]
      rows.push(rowOf(what, our, single, 'better-sqlite3', target === undefined ? undefined : { atLeast: target }))
      if (batch) rows.push(rowOf('', our, batch, `${writers} in one transaction`))
    }
    // Reads that wait for nothing leave no gap to measure but their own.
    if (workload === 'list') continue
    rows.push({ what: `longest gap of the loop, ${workload}`, ours: ms(gap), value: gap, target: GAP })
  }
  await ours.kill()
  await native?.kill()
  report.section('Store, against better-sqlite3 with synchronous = FULL and one transaction a commit', rows)
}

function rowOf(what: string, our: Slice[], other: Slice[] | undefined, name: string, target?: Target): Row {
  const rate = (slices: Slice[]) => slices.map(slice => slice.rate)
  const textOf = (slices: Slice[]) => `${perSecond(median(rate(slices)))} p50 ${ms(median(slices.map(s => s.p50)))}`
  const ratio = other && ratioOf(rate(our), rate(other))
  return {
    what,
    ours: what === '' ? '' : textOf(our),
    baseline: other ? `${name}: ${textOf(other)}` : '',
    ...(ratio !== undefined && { ratio, value: ratio }),
    ...(target && { target }),
  }
}
