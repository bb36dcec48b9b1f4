import type { SecretOwner } from '../../access/vault/api.js'
import { EVERYWHERE, placeOf } from './identity.js'

/** An extension or one of its links. */
interface Named {
  readonly name: string
  readonly key: string
}

/** Vault folders of an extension's secrets: those of its process, and those of its MCP servers. */
export const secretFolders = (name: string): readonly string[] => [`extensions/${name}/`, `mcp/extensions/${name}/`]

/** Owner of these secrets, which are deleted when the extension is purged. */
export const extensionSecrets: SecretOwner = {
  what: 'extension',
  paths: name => secretFolders(name).map(folder => folder.slice(0, -1)),
}

/**
 * Default vault reference of a variable; each link has its own.
 * @param server the MCP server that uses the variable; empty: the process of the extension
 */
export function secretReference(extension: Named, variable: string, server = ''): string {
  const workspace = placeOf(extension)
  const where = workspace === '' ? '' : `ws/${workspace === EVERYWHERE ? 'all' : workspace}/`
  const [own = '', servers = ''] = secretFolders(extension.name)
  return `vault:${server === '' ? own : servers}${where}${server === '' ? '' : `${server}/`}env/${variable}`
}

/** Whether a path is a secret of a link to that workspace. */
export const isOfLink = (path: string, workspace: string): boolean =>
  /^(?:mcp\/)?extensions\/[^/]+\/ws\/([^/]+)\//.exec(path)?.[1] === workspace
