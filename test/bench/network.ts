import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { pairs } from './measure.js'
import type { NetworkHopProcess } from './network-hop-process.js'
import type { NetworkProcess } from './network-process.js'

const PEERS = 100
const READERS = 100

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
  const readers = await pairs(
    quick ? 2 : 5,
    () => child.call('followed', count, READERS),
    () => child.call('messages', count),
  )
  await child.kill()
  report.section('Network', [
    {
      what: `messages to ${PEERS} peers, each with its decisions, durably`,
      ours: perSecond(a),
      baseline: `one record for each: ${perSecond(b)}`,
      ratio,
    },
    {
      what: `the same, until ${READERS} readers of the conversation have each`,
      ours: perSecond(readers.a),
      baseline: `without readers: ${perSecond(readers.b)}`,
      ratio: readers.ratio,
    },
  ])
}

/**
 * A message from a daemon's store to another's, beside bare clients of NATS: those store a row on each side too, publish with an
 * acknowledgement, and know what they have by its id. They sign nothing, and the sender does not read its own messages.
 */
export async function benchNetworkHop({ bench, quick, report }: Context): Promise<void> {
  const child = Child.start<NetworkHopProcess>(path.join(bench, 'network-hop-process.ts'))
  await child.call('boot')
  const rounds = quick ? 5 : 20
  const measure = async (atOnce: number) => {
    const { a, b, ratio } = await pairs(
      quick ? 2 : 9,
      () => child.call('messages', rounds, atOnce),
      () => child.call('bare', rounds, atOnce),
    )
    const textOf = (ms: number) => `${(ms / atOnce).toFixed(2)} ms`
    return { ours: textOf(a), baseline: `bare clients: ${textOf(b)}`, ratio, value: ratio, target: { atMost: 1.3 } }
  }
  const one = await measure(1)
  const many = await measure(64)
  const proof = await child.call('proofs', 500)
  await child.call('close')
  await child.kill()
  report.section('Network between daemons', [
    { what: 'a message from store to store', ...one },
    { what: '64 messages at once, each', ...many },
    { what: 'of it: a signature and its verification', ours: `${proof.toFixed(2)} ms`, baseline: 'none' },
  ])
}
