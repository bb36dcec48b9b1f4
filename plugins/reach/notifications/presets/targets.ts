import { createHash } from 'node:crypto'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { PresetTarget } from '../../../../schemas/notifications.js'
import type { BridgeAddress, BridgeInfo, BridgesApi } from '../../bridges/api.js'
import { type NotificationChannel, NotificationChannels, NotificationErrors } from '../api.js'
import type { K } from '../needs.js'

const { preset_target_ambiguous: ambiguous, preset_target_invalid: invalid } = NotificationErrors

/** The channel that a target names in place of a bridge. */
export const channelOf = (
  kernel: Pick<K, 'collect'>,
  { bridge_id: name }: Pick<PresetTarget, 'bridge_id'>,
): NotificationChannel | undefined =>
  kernel.collect(NotificationChannels).find(({ entry }) => entry.name === name)?.entry

/** Key of a target within a preset. Stays the same while the target leads to the same room. */
export const targetKey = ({ bridge_id: bridge, canonical_route: route = '' }: PresetTarget): string =>
  createHash('sha256').update(`${bridge}\n${route}`).digest('hex').slice(0, 16)

/**
 * Resolves a target's bridge to an id, and the room or person it names to a route. Throws `preset_target_ambiguous` or
 * `preset_target_invalid` (422) if it leads to several rooms or to none.
 */
export async function resolved(target: PresetTarget, bridges: BridgesApi): Promise<PresetTarget> {
  const bridge = bridgeOf(target.bridge_id, bridges)
  const { canonical_route: name } = target
  const own = { ...target, bridge_id: bridge.id }
  if (name === undefined || bridges.parseRoute(name)) {
    addressOf(target, bridge, bridges)
    return own
  }
  const found = await bridges.findTarget(bridge.id, name)
  if ('route' in found)
    return { ...own, canonical_route: found.route, display_name: target.display_name ?? found.displayName }
  const next = { next: command('bridge targets', bridge.id) }
  const some = found.candidates.join(', ')
  if (found.isAmbiguous)
    throw ambiguous(`several targets have the name ${shown(name)}: ${some}; give the route of one`, next)
  const near = some === '' ? '' : `; there are ${some}`
  throw invalid(`${shown(name)} is neither a route such as group:#ops nor the name of a target${near}`, next)
}

/**
 * Where to send a message about a session: to the conversation it answers, if the target wants that; otherwise to the
 * target.
 */
export function destinationOf(
  { bridge_id: bridgeId, delivery_mode: mode }: Pick<PresetTarget, 'bridge_id' | 'delivery_mode'>,
  sessions: readonly (string | undefined)[],
  bridges: BridgesApi,
): { readonly target: BridgeAddress; readonly replyTo: string } | undefined {
  if (mode !== 'reply') return undefined
  for (const session of sessions) {
    const found = session === undefined ? undefined : bridges.conversationOf(bridgeId, session)
    if (found) return { target: found.target, replyTo: found.messageId }
  }
  return undefined
}

function bridgeOf(reference: string, bridges: BridgesApi): BridgeInfo {
  const found = bridges.get(reference)
  if (found) return found
  const named = bridges.list().filter(({ displayName }) => displayName === reference)
  const [only, ...others] = named
  if (only && others.length === 0) return only
  if (!only) throw invalid(`there is no bridge ${shown(reference)}`)
  throw ambiguous(`${named.length} bridges are named ${shown(reference)}: ${named.map(({ id }) => id).join(', ')}`)
}

/** The address of a target. Throws `preset_target_ambiguous` and `preset_target_invalid` (422). */
export function addressOf(target: PresetTarget, bridge: BridgeInfo, bridges: BridgesApi): BridgeAddress {
  const { canonical_route: route } = target
  const next = { next: command('bridge targets', bridge.id) }
  if (route === undefined) {
    if (bridge.defaultTarget) return bridge.defaultTarget
    throw ambiguous(`the bridge ${bridge.id} has no default target: name a canonical_route`, next)
  }
  const address = bridges.parseRoute(route)
  if (address) return address
  throw invalid(`${shown(route)} is not a route such as group:#ops or peer:alice`, next)
}

/** Why messages to a target cannot be sent now. Undefined if they can. */
export function targetProblem(target: PresetTarget, bridges: BridgesApi): string | undefined {
  const bridge = bridges.get(target.bridge_id)
  if (!bridge) return `the bridge ${target.bridge_id} no longer exists`
  try {
    addressOf(target, bridge, bridges)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Name of a target in texts. */
export function targetText(
  { bridge_id: id, canonical_route: route, display_name: name }: PresetTarget,
  bridges?: Pick<BridgesApi, 'get'>,
): string {
  const bridge = bridges?.get(id)?.displayName ?? id
  return route === undefined ? bridge : `${bridge} ${name ?? route}`
}

/** The command that shows a preset. */
export const showHint = (name: string) => ({ next: command('notifications preset show', name) })
