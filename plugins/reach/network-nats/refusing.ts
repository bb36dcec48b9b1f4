import type { Tx } from '../../../kernel/plugin.js'
import type { Refusal } from '../network/api.js'
import { RemoteRefused } from './api.js'
import type { K } from './needs.js'
import { refusals } from './tables.js'

const MINUTE = 60_000

/** Counts a refusal, and emits an event at most once a minute per peer and reason. @param channel empty for an offer */
export function noteRefusal(kernel: K, t: Tx, peer: string, channel: string, { reason, message }: Refusal): void {
  const at = kernel.clock.now()
  const before = refusals.get(t, { peer, reason })
  refusals.replace(t, { peer, reason, n: (before?.n ?? 0) + 1, at, message, channel })
  if (before && at - before.at < MINUTE) return
  kernel.needs.events.emit(t, RemoteRefused, { peer, channel, reason_code: reason, message })
}
