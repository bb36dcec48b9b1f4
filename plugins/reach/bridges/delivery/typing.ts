import type { BridgeProvider, DeliveryRequest } from '../adapter.js'
import type { Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { deliver } from './attempt.js'
import type { Delivery } from './table.js'

/** Milliseconds between requests: platforms show the indicator for at least five seconds. */
const EVERY_MS = 4000

/**
 * Shows the typing indicator until the signal aborts, if the operator enabled it and the platform supports it. It is
 * best effort: nothing waits for it, and nothing is stored.
 * @param isWriting whether the turn runs: a queued question shows no indicator
 */
export async function showTyping(
  kernel: K,
  instances: Instances,
  { id, bridgeId, target }: Delivery,
  isWriting: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const provider = providerOf(instances, bridgeId)
    if (provider && isWriting()) {
      const request: DeliveryRequest = {
        ...{ bridge_instance_id: bridgeId, delivery_id: id, part: 0, event: 'typing', target, text: '' },
        nonce: kernel.ids.id('msg'),
      }
      await deliver(kernel.clock, provider, request, signal)
    }
    await kernel.clock.sleep(provider && isWriting() ? EVERY_MS : EVERY_MS / 4, signal).catch(() => {})
  }
}

function providerOf(instances: Instances, id: string): BridgeProvider | undefined {
  const provider = instances.provider(id)
  const isWanted = instances.get(id)?.deliveryDefaults?.progress?.typing === true
  return isWanted && instances.accepts(id) && provider?.capabilities.typing === true ? provider : undefined
}
