import type { Clock } from './clock.js'
import type { Host } from './host/host.js'
import type { Transport } from './http/transport.js'

const SHUTDOWN_MS = 10_000

/** First pass of a shutdown: what runs is ended in the specification's order, in ten seconds altogether. */
export async function quiesceAll(
  host: Host,
  transport: Transport,
  order: readonly string[],
  clock: Clock,
): Promise<void> {
  const until = clock.monotonic() + SHUTDOWN_MS
  const phases = [...order, ...host.phases().filter(phase => !order.includes(phase))]
  for (const phase of phases) {
    const left = Math.max(0, until - clock.monotonic())
    if (phase === 'http') await transport.close('tcp', Math.min(left, 2000))
    else if (phase === 'socket') await transport.close('socket', Math.min(left, 2000))
    await host.quiesce({ phase }, left)
  }
}
