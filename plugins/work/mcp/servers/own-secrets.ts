import type { SecretOwner } from '../../../access/vault/api.js'
import type { Declaration, Declared } from '../sources/declaration.js'

/** Secrets of the servers of a workspace are deleted after the workspace: logins are revoked before. */
export const workspaceSecrets: SecretOwner = { what: 'workspace', paths: id => [`mcp/ws/${id}`] }

/** References of the secrets that a server names. */
export const references = ({ secret_env, secret_headers, auth }: Declaration): string[] => [
  ...Object.values(secret_env ?? {}),
  ...Object.values(secret_headers ?? {}),
  ...(auth?.client_secret_ref ? [auth.client_secret_ref] : []),
]

/** Those that lie where this server keeps its own; what several servers share stays. */
export function ownSecrets({ source: { workspaceId }, declaration }: Declared): string[] {
  const below = `${refBase(declaration.name, workspaceId)}/`
  return references(declaration).filter(reference => reference.startsWith(below))
}

/** Where secrets of a server lie. A name that no path of the vault can have is spelled with `-`. */
export function refBase(name: string, workspaceId: string | undefined): string {
  const segment = name
    .toLowerCase()
    .replace(/[^a-z0-9_.-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
  return `vault:mcp/${workspaceId === undefined ? 'global' : `ws/${workspaceId}`}/${segment || 'server'}`
}
