import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import type { BridgeAddress, InboundEvent, RoutingPolicy } from '../api.js'
import { fallsBack } from './policy.js'

/** The part of an instance that determines conversations. */
export interface RoutedInstance {
  readonly id: string
  readonly scope: 'global' | 'workspace'
  readonly workspaceId?: string
  readonly routingPolicy: RoutingPolicy
  readonly providerConfig: Readonly<Record<string, unknown>>
}

/** A conversation: its distinguishing members and their hash. */
export interface Conversation {
  readonly key: string
  readonly dimensions: BridgeAddress
}

const DIMENSIONS = ['peer_id', 'group_id', 'thread_id'] as const
const ENABLED = { peer_id: 'include_peer', group_id: 'include_group', thread_id: 'include_thread' } as const

/**
 * The conversation of an event, or the name of a missing member. With `provider_config.routing.fallback` a missing
 * group is replaced by the person, as in a direct message, and a missing thread is ignored.
 */
export function conversationOf(
  instance: RoutedInstance,
  event: InboundEvent,
): Conversation | (typeof DIMENSIONS)[number] {
  const dimensions: Record<string, string> = {}
  for (const dimension of DIMENSIONS) {
    if (!instance.routingPolicy[ENABLED[dimension]]) continue
    const value = event[dimension]
    if (value !== undefined) dimensions[dimension] = value
    else if (!fallsBack(instance)) return dimension
    else if (dimension !== 'thread_id') dimensions.peer_id = event.peer_id ?? event.sender.id
  }
  const { id, scope, workspaceId } = instance
  const text = canonicalJson({
    ...{ bridge_instance_id: id, scope, ...dimensions },
    ...(workspaceId !== undefined && { workspace_id: workspaceId }),
  })
  return { key: createHash('sha256').update(text).digest('hex'), dimensions }
}

/** Address for the answer to an event: its group, else its person. */
export function addressOf({ group_id, peer_id, thread_id, sender }: InboundEvent): BridgeAddress {
  const chat = group_id === undefined ? { peer_id: peer_id ?? sender.id } : { group_id }
  return { ...chat, ...(thread_id !== undefined && { thread_id }) }
}
