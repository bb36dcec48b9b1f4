import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import type { JournalProcess, Throughput } from './journal-process.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** Appending to a journal, replaying it, opening it at its end; beside a plain file with the same bytes. */
export async function benchJournal({ temp, quick, report, program }: Context): Promise<void> {
  const folder = path.join(temp, 'journals')
  mkdirSync(folder)
  const count = quick ? 200_000 : 1_000_000
  const start = () => Child.start<JournalProcess>(program('journal-process'), [folder])
  const child = start()
  let made = 0
  const [appended = [], plain = []] = await inTurn(3, [
    () => child.call('append', `journal-${++made}`, count),
    () => child.call('appendPlain', count),
  ])
  const [replayed = [], read = []] = await inTurn(3, [
    () => child.call('replay', 'journal-1'),
    () => child.call('readPlain', count),
  ])
  await child.kill()
  const opened = await inTurn(quick ? 3 : 5, [
    async () => {
      const fresh = start()
      const result = await fresh.call('open', `journal-${made}`)
      await fresh.kill()
      return result
    },
  ])
  const [opens = []] = opened
  const many = count.toLocaleString('en')
  const gap = Math.max(...[...appended, ...replayed].map(one => one.gap))
  const row = (what: string, ours: Throughput[], base: Throughput[], name: string, atLeast: number): Row => {
    const [a, b] = [ours, base].map(list => list.map(one => one.rate)) as [number[], number[]]
    const baseline = `${name}: ${perSecond(median(b))}`
    return {
      what,
      ours: perSecond(median(a)),
      baseline,
      ratio: ratioOf(a, b),
      value: median(a),
      target: { atLeast, unit: '/s' },
    }
  }
  report.section(`Journal, records of 200 bytes, ${many} of them`, [
    row('append, 64 at once, synced at the end', appended, plain, 'plain writes', 100_000),
    row('replay, 1000 at once', replayed, read, 'plain reads', 500_000),
    {
      what: 'open at the end, and read the last 100',
      ours: `${ms(median(opens.map(one => one.open)))} and ${ms(median(opens.map(one => one.tail)))}`,
    },
    { what: 'longest gap of the loop', ours: ms(gap), value: gap, target: { atMost: 50, unit: 'ms' } },
  ])
}
