import { createHash } from 'node:crypto'

/** `[network_participation]` of a manifest. */
export interface NetworkRequirement {
  readonly required: boolean
  readonly channel_scopes?: readonly string[] | undefined
}

/**
 * What is confirmed: SHA-256, hex, of the requirement as compact JSON with its scopes sorted and each once; empty where
 * nothing is required (Behaviour 3.7).
 */
export function requirementDigest(requirement: NetworkRequirement | undefined): string {
  if (!requirement?.required) return ''
  const channel_scopes = [...new Set(requirement.channel_scopes ?? [])].sort()
  return createHash('sha256')
    .update(JSON.stringify({ required: true, mode: 'live', channel_scopes }))
    .digest('hex')
}
