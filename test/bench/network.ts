import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { pairs } from './measure.js'
import type { NetworkProcess } from './network-process.js'

const PEERS = 100

/** Messages in a channel of many peers with what each of them is to hear, beside a plain record for each message. */
export async function benchNetwork({ temp, program, quick, report }: Context): Promise<void> {
  const home = path.join(temp, 'network')
  mkdirSync(home, { mode: 0o700 })
  const child = Child.start<NetworkProcess>(program('network-process'), [home])
  await child.call('boot', PEERS)
  const count = quick ? 200 : 1000
  const perSecond = (ms: number) => `${Math.round((count / ms) * 1000)}/s`
  const { a, b, ratio } = await pairs(
    quick ? 3 : 7,
    () => child.call('messages', count),
    () => child.call('records', count),
  )
  await child.kill()
  report.section('Network', [
    {
      what: `messages to ${PEERS} peers, each with its decisions, durably`,
      ours: perSecond(a),
      baseline: `one record for each: ${perSecond(b)}`,
      ratio,
    },
  ])
}
