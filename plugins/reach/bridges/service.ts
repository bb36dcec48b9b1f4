import type { Tx } from '../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../schemas/bridges.js'
import {
  type BridgeAddress,
  type BridgeInfo,
  type BridgesApi,
  type DeliveryStanding,
  type PostedMessage,
  points,
} from './api.js'
import { parseRoute, routeOf } from './instances/addresses.js'
import { type Instance, Instances } from './instances/instances.js'
import type { K } from './needs.js'
import { BridgeProcesses } from './processes/processes.js'

/** Connections of messaging platforms to the daemon, a room for each part of their work. */
export class BridgesService implements BridgesApi {
  readonly deliveryEnded
  readonly instances: Instances
  readonly processes: BridgeProcesses

  constructor(kernel: K) {
    const { deliveryEnded } = kernel.hooks.of(points)
    this.deliveryEnded = deliveryEnded
    this.instances = new Instances(kernel)
    this.processes = new BridgeProcesses(kernel)
  }

  get(id: string): BridgeInfo | undefined {
    const instance = this.instances.get(id)
    return instance && infoOf(instance)
  }

  list(): readonly BridgeInfo[] {
    return this.instances.list().map(infoOf)
  }

  post(_t: Tx, { bridgeId }: PostedMessage): 'queued' | 'known' | 'suppressed' | 'missing' {
    const instance = this.instances.get(bridgeId)
    if (!instance) return 'missing'
    if (instance.suppress) return 'suppressed'
    throw new Error('this daemon delivers no messages yet')
  }

  standing(_key: string): DeliveryStanding | undefined {
    return undefined
  }

  parseRoute(route: string): BridgeAddress | undefined {
    return parseRoute(route)
  }

  routeOf(address: BridgeAddress): string {
    return routeOf(address)
  }

  totals(): BridgeTotals {
    return this.instances.totals()
  }
}

function infoOf({
  id,
  displayName,
  platform,
  extension,
  workspaceId,
  status,
  suppress,
  deliveryDefaults,
}: Instance): BridgeInfo {
  const { peer_id, group_id, thread_id } = deliveryDefaults ?? {}
  const target = {
    ...(peer_id === undefined ? {} : { peer_id }),
    ...(group_id === undefined ? {} : { group_id }),
    ...(thread_id === undefined ? {} : { thread_id }),
  }
  return {
    id,
    displayName,
    platform,
    extension,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    status,
    notificationSuppress: suppress,
    defaultTarget: peer_id === undefined && group_id === undefined ? undefined : target,
  }
}
