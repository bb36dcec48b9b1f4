import type { Actor, Party } from '../../../kernel/plugin.js'
import type { Grants } from '../extensions/api.js'

/** Source of an extension's records. */
export const sourceOf = (key: string): Party => ({ kind: 'extension', id: key })

/** The actor for an extension's own records, through the process with this nonce. */
export function publisher(key: string, grants: Grants, nonce: string, workspace?: string): Actor {
  const source = sourceOf(key)
  return {
    kind: 'extension',
    id: key,
    owner: source,
    source,
    origin: 'extension',
    nonce,
    grantedKinds: grants.kinds,
    grantedScopes: grants.scopes,
    ...(workspace === undefined ? {} : { maxScope: { kind: 'workspace', id: workspace } }),
  }
}

/**
 * The actor for all other calls of an extension. The extension owns the records it creates, but their source is that of
 * requests, so that an operator can change them.
 */
export function caller(key: string): Actor {
  return {
    kind: 'daemon',
    id: `extension.${key}`,
    owner: sourceOf(key),
    source: { kind: 'daemon', id: 'system' },
    origin: 'extension',
  }
}
