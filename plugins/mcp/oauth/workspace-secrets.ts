import type { SecretOwner } from '../../vault/api.js'

/** Secrets of the servers of a workspace are deleted after the workspace: logins are revoked before. */
export const workspaceSecrets: SecretOwner = { what: 'workspace', paths: id => [`mcp/ws/${id}`] }
