import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { BundlesProcess } from './bundles-process.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { ms, pairs } from './measure.js'

/** Activation of a large bundle, from the request until the runtime has taken it up, beside plain writes of as many records. */
export async function benchBundles({ temp, program, quick, report }: Context): Promise<void> {
  const [agents, jobs, layouts] = [50, 50, 10]
  const home = path.join(temp, 'bundles')
  mkdirSync(home, { mode: 0o700 })
  const child = Child.start<BundlesProcess>(program('bundles-process'), [home])
  await child.call('boot', agents, jobs, layouts)
  const records = agents + jobs + layouts
  const { a, b, ratio } = await pairs(
    quick ? 5 : 21,
    () => child.call('activate'),
    () => child.call('plain', records),
  )
  await child.kill()
  report.section('Bundles', [
    {
      what: `activation of ${agents} agents, ${jobs} jobs, ${layouts} layouts`,
      ours: ms(a),
      baseline: `${records} plain records in one transaction: ${ms(b)}`,
      ratio,
    },
  ])
}
