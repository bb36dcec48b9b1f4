import type { BridgeAddress } from '../api.js'

const MAX = 1024

/** Parses a route such as `group:#ops` or `peer:alice`, optionally followed by `/thread:…`. Undefined if invalid. */
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

/** Formats a route for {@link parseRoute}. A group takes precedence over a peer, who is a member of it. */
export function routeOf({ group_id, peer_id, thread_id }: BridgeAddress): string {
  const chat = group_id === undefined ? `peer:${escaped(peer_id ?? '')}` : `group:${escaped(group_id)}`
  return thread_id === undefined ? chat : `${chat}/thread:${escaped(thread_id)}`
}

/** Escapes only characters that separate the parts of a route, so that it stays readable. */
const escaped = (text: string): string => text.replace(/[/%\s]/g, encodeURIComponent)
