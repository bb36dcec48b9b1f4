import type { SecretOwner } from '../../access/vault/api.js'
import { EVERYWHERE, placeOf } from './identity.js'

/** An extension, or one link of it. */
interface Named {
  readonly name: string
  readonly key: string
}

/** Below which the vault has the secrets of an extension: those of its process, and those of the MCP servers that it ships. */
export const secretFolders = (name: string): readonly string[] => [`extensions/${name}/`, `mcp/extensions/${name}/`]

/** They are deleted when the extension is purged. */
export const extensionSecrets: SecretOwner = {
  what: 'extension',
  paths: name => secretFolders(name).map(folder => folder.slice(0, -1)),
}

/**
 * Where the vault has the value of a variable unless something else is said; each link has its own.
 * @param server the MCP server that the variable is for; empty: the process of the extension
 */
export function secretReference(extension: Named, variable: string, server = ''): string {
  const place = placeOf(extension)
  const where = place === '' ? '' : `ws/${place === EVERYWHERE ? 'all' : place}/`
  const [own = '', servers = ''] = secretFolders(extension.name)
  return `vault:${server === '' ? own : servers}${where}${server === '' ? '' : `${server}/`}env/${variable}`
}

/** Whether a link to that workspace has the secret of a path. */
export const isOfLink = (path: string, workspace: string): boolean =>
  /^(?:mcp\/)?extensions\/[^/]+\/ws\/([^/]+)\//.exec(path)?.[1] === workspace
