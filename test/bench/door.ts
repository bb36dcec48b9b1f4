import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import type { DoorHandlers } from './door-process.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** Requests over TCP with a token, and with a lookup of who is at the other end, beside a kernel that takes everybody. */
export async function benchDoor({ program, temp, quick, report }: Context): Promise<void> {
  const open = async (by: 'token' | 'peer' | 'open') => {
    const home = path.join(temp, `door-${by}`)
    mkdirSync(home, { mode: 0o700 })
    const child = Child.start<DoorHandlers>(program('door-process'))
    return { child, ...(await child.call('open', home, by)) }
  }
  const [known, looked, bare] = [await open('token'), await open('peer'), await open('open')]
  const [rounds, seconds] = quick ? [1, 0.6] : [5, 1.2]
  const rows: Row[] = []
  /** With the milliseconds of processor time that a request takes the server: the load is a program that has its own. */
  const busy =
    ({ child }: typeof known, load: () => ReturnType<typeof runLoad>) =>
    async () => {
      const before = await child.call('cpu')
      const result = await load()
      return { ...result, cpu: ((await child.call('cpu')) - before) / result.requests }
    }
  const measure = async (
    what: string,
    clients: number,
    fresh: boolean,
    { ours = looked, by = 'rate', lasting = seconds } = {},
  ) => {
    const load =
      ({ port, token = '' }: Pick<typeof known, 'port' | 'token'>) =>
      () =>
        runLoad(program('load'), {
          port,
          token,
          method: 'GET',
          url: '/api/bench',
          clients,
          seconds: lasting,
          body: '',
          fresh,
        })
    await ours.child.call('gap')
    const results = await inTurn(rounds + 1, [busy(ours, load(ours)), busy(bare, load(bare))])
    const gap = await ours.child.call('gap')
    const [checked = [], unchecked = []] = results.map(all => all.slice(1))
    const textOf = (all: typeof checked) =>
      `${perSecond(median(all.map(one => one.rate)))} p50 ${ms(median(all.map(one => one.p50)))}`
    const rates = ratioOf(
      checked.map(({ rate }) => rate),
      unchecked.map(({ rate }) => rate),
    )
    const cpu = ratioOf(
      checked.map(one => one.cpu),
      unchecked.map(one => one.cpu),
    )
    const baseline = `for everybody: ${textOf(unchecked)}`
    const judged = by === 'cpu' ? { value: cpu, target: { atMost: 1.05, unit: 'of its processor time' } } : {}
    const target = fresh ? {} : by === 'rate' ? { value: rates, target: { atLeast: 0.9 } } : judged
    rows.push({ what, ours: `${textOf(checked)}, gap ${ms(gap)}`, baseline, ratio: rates, ...target })
  }
  await measure('a token, keep-alive, 16 clients', 16, false, { ours: known, by: 'cpu' })
  await measure('keep-alive, 16 clients', 16, false)
  // Shortly: each connection, those of the baseline too, leaves a row for a minute, and each lookup reads half of the rows.
  await measure('a connection each request, 1 client', 1, true, { lasting: 0.1 })
  await measure('a connection each request, 16 clients', 16, true)
  const closed = readFileSync('/proc/net/tcp', 'latin1').split(' 06 ').length - 1
  await measure(`a connection each request beside ${closed} closed ones, 1 client`, 1, true, { lasting: 0.3 })
  const holder = Child.start<DoorHandlers>(program('door-process'))
  await holder.call('hold', quick ? 2000 : 8000)
  await measure(`16 clients beside ${quick ? 2000 : 8000} open connections`, 16, true)
  await measure('keep-alive beside them', 16, false)
  for (const { child } of [known, looked, bare, { child: holder }]) await child.kill()
  report.section('TCP', rows)
}
