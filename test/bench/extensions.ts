import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import type { ExtensionHandlers } from './extension-process.js'
import { inTurn, median, ms, ratioOf } from './measure.js'

/** A call of a warm process of an extension, beside a bare process that gives back what it is sent. */
export async function benchExtensions({ program, root, quick, report }: Context): Promise<void> {
  const [rounds, calls] = quick ? [2, 500] : [7, 2000]
  const child = Child.start<ExtensionHandlers>(program('extension-process'))
  await child.call('start', path.join(root, 'examples/extensions/clock-node'))
  const [ours = [], bare = []] = (
    await inTurn(rounds + 1, [() => child.call('ours', calls), () => child.call('bare', calls)])
  ).map(all => all.slice(1))
  await child.call('stop')
  await child.kill()
  const rows = (['p50', 'p99'] as const).map(part => {
    const [a, b] = [ours, bare].map(all => all.map(one => one[part])) as [number[], number[]]
    return {
      what: `call of a warm process, ${part}`,
      ours: ms(median(a)),
      baseline: `bare pipe: ${ms(median(b))}`,
      ratio: ratioOf(a, b),
    }
  })
  report.section('Extensions', rows)
}
