import type { SecretOwner } from '../../../access/vault/api.js'
import type { Declaration, Declared } from '../sources/declaration.js'

/** Owner of a workspace's server secrets. They are deleted after the workspace, because logins have to be revoked first. */
export const workspaceSecrets: SecretOwner = { what: 'workspace', paths: id => [`mcp/ws/${id}`] }

/** Secret references of a server. */
export const references = ({ secret_env, secret_headers, auth }: Declaration): string[] => [
  ...Object.values(secret_env ?? {}),
  ...Object.values(secret_headers ?? {}),
  ...(auth?.client_secret_ref ? [auth.client_secret_ref] : []),
]

/** References in the server's own vault folder; secrets shared by several servers stay. */
export function ownSecrets({ source: { workspaceId }, declaration }: Declared): string[] {
  const below = `${refBase(declaration.name, workspaceId)}/`
  return references(declaration).filter(reference => reference.startsWith(below))
}

/** Vault folder of a server's secrets. Characters that a vault path cannot contain become `-`. */
export function refBase(name: string, workspaceId: string | undefined): string {
  const segment = name
    .toLowerCase()
    .replace(/[^a-z0-9_.-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
  return `vault:mcp/${workspaceId === undefined ? 'global' : `ws/${workspaceId}`}/${segment || 'server'}`
}
