import { createHash } from 'node:crypto'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { PresetTarget } from '../../../../schemas/notifications.js'
import type { BridgeAddress, BridgeInfo, BridgesApi } from '../../bridges/api.js'
import { NotificationErrors } from '../api.js'

const { preset_target_ambiguous: ambiguous, preset_target_invalid: invalid } = NotificationErrors

/** Tells the targets of one preset apart; stays the same as long as a target leads to the same room. */
export const targetKey = ({ bridge_id: bridge, canonical_route: route = '' }: PresetTarget): string =>
  createHash('sha256').update(`${bridge}\n${route}`).digest('hex').slice(0, 16)

/**
 * The target with the id of its bridge. Throws `preset_target_ambiguous`, `preset_target_invalid` (422) for one that leads nowhere
 * or to more than one room.
 */
export function resolved(target: PresetTarget, bridges: BridgesApi): PresetTarget {
  const bridge = bridgeOf(target.bridge_id, bridges)
  addressOf(target, bridge, bridges)
  return { ...target, bridge_id: bridge.id }
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

/** The address that a target leads to. Throws `preset_target_ambiguous` and `preset_target_invalid` (422). */
export function addressOf(target: PresetTarget, bridge: BridgeInfo, bridges: BridgesApi): BridgeAddress {
  const { canonical_route: route } = target
  const next = { next: `svc bridge targets ${bridge.id}` }
  if (route === undefined) {
    if (bridge.defaultTarget) return bridge.defaultTarget
    throw ambiguous(`the bridge ${bridge.id} has no default target: name a canonical_route`, next)
  }
  const address = bridges.parseRoute(route)
  if (address) return address
  throw invalid(`${shown(route)} is no route; one looks like group:#ops or peer:alice`, next)
}

/** Why messages to a target cannot be sent now; undefined: they can. */
export function targetProblem(target: PresetTarget, bridges: BridgesApi): string | undefined {
  const bridge = bridges.get(target.bridge_id)
  if (!bridge) return `the bridge ${target.bridge_id} is gone`
  try {
    addressOf(target, bridge, bridges)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** How a target is called in texts. */
export function targetText(
  { bridge_id: id, canonical_route: route, display_name: name }: PresetTarget,
  bridges?: Pick<BridgesApi, 'get'>,
): string {
  const bridge = bridges?.get(id)?.displayName ?? id
  return route === undefined ? bridge : `${bridge} ${name ?? route}`
}

/** The command with which a person looks at a preset. */
export const look = (name: string) => ({ next: command('notifications preset show', name) })
