import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import type { DoorHandlers } from './door-process.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** Requests over TCP beside a kernel that does not look up who is at the other end of a connection. */
export async function benchDoor({ program, temp, quick, report }: Context): Promise<void> {
  const open = async (name: string, looksUp: boolean) => {
    const home = path.join(temp, name)
    mkdirSync(home, { mode: 0o700 })
    const child = Child.start<DoorHandlers>(program('door-process'))
    return { child, port: await child.call('open', home, looksUp) }
  }
  const [ours, bare] = [await open('door', true), await open('door-unchecked', false)]
  const [rounds, seconds] = quick ? [1, 0.6] : [5, 1.2]
  const rows: Row[] = []
  const measure = async (what: string, clients: number, fresh: boolean) => {
    const load = (port: number) => () =>
      runLoad(program('load'), { port, method: 'GET', url: '/api/bench', clients, seconds, body: '', fresh })
    await ours.child.call('gap')
    const results = await inTurn(rounds + 1, [load(ours.port), load(bare.port)])
    const gap = await ours.child.call('gap')
    const [checked = [], unchecked = []] = results.map(all => all.slice(1))
    const told = (all: typeof checked) =>
      `${perSecond(median(all.map(one => one.rate)))} p50 ${ms(median(all.map(one => one.p50)))}`
    const ratio = ratioOf(
      checked.map(({ rate }) => rate),
      unchecked.map(({ rate }) => rate),
    )
    const baseline = `without the lookup: ${told(unchecked)}`
    const target = fresh ? {} : { value: ratio, target: { atLeast: 0.9 } }
    rows.push({ what, ours: `${told(checked)}, gap ${ms(gap)}`, baseline, ratio, ...target })
  }
  await measure('keep-alive, 16 clients', 16, false)
  await measure('a connection each request, 1 client', 1, true)
  await measure('a connection each request, 16 clients', 16, true)
  const holder = Child.start<DoorHandlers>(program('door-process'))
  await holder.call('hold', quick ? 2000 : 8000)
  await measure(`the same beside ${quick ? 2000 : 8000} open connections`, 16, true)
  await measure('keep-alive beside them', 16, false)
  for (const { child } of [ours, bare, { child: holder }]) await child.kill()
  report.section('TCP', rows)
}
