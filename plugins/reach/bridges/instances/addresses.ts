import type { BridgeAddress } from '../api.js'

const MAX = 1024

/** The address of a route as text, `group:#ops` or `peer:alice`, with `/thread:…` behind it; undefined for a text that is none. */
export function parseRoute(route: string): BridgeAddress | undefined {
  if (route.length > MAX) return undefined
  const [, type, id = '', thread] =
    /^(peer|group):((?:[^/%\s]|%[0-9A-F]{2})+)(?:\/thread:((?:[^/%\s]|%[0-9A-F]{2})+))?$/.exec(route) ?? []
  if (type === undefined) return undefined
  try {
    const below = thread === undefined ? {} : { thread_id: decodeURIComponent(thread) }
    return type === 'peer'
      ? { peer_id: decodeURIComponent(id), ...below }
      : { group_id: decodeURIComponent(id), ...below }
  } catch {
    return undefined
  }
}

/** The text of {@link parseRoute}. A group counts before a peer, which is a member of it. */
export function routeOf({ group_id, peer_id, thread_id }: BridgeAddress): string {
  const place = group_id === undefined ? `peer:${escaped(peer_id ?? '')}` : `group:${escaped(group_id)}`
  return thread_id === undefined ? place : `${place}/thread:${escaped(thread_id)}`
}

/** Only what would be taken for another part of a route is escaped, so that a person can read it. */
const escaped = (text: string): string => text.replace(/[/%\s]/g, encodeURIComponent)
