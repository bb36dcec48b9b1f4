import type { SandboxProfile } from '../../../schemas/settings/entries.js'
import { DEFAULT_PROFILE } from './api.js'

/** The only backend. */
export const BACKEND = 'bubblewrap'

/** A resolved profile. */
export interface Profile {
  readonly name: string
  readonly network: 'host' | 'none'
  readonly env: Readonly<Record<string, string>>
  /** References to secrets, by variable. */
  readonly secrets: Readonly<Record<string, string>>
}

/** A profile by name, or why it cannot be used: a request that is not enforced is never ignored. */
export function profileOf(
  name: string,
  entries: Readonly<Record<string, SandboxProfile>>,
): Profile | { readonly problem: string } | undefined {
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
  if (!entry) return name === DEFAULT_PROFILE ? { name, network: 'host', env: {}, secrets: {} } : undefined
  const problem = problemOf(entry)
  if (problem !== undefined) return { problem: `sandbox profile ${name}: ${problem}` }
  const network = entry.network?.allow_outbound === false ? 'none' : 'host'
  return { name, network, env: entry.env ?? {}, secrets: entry.secret_env ?? {} }
}

function problemOf({ backend, daytona, network, persistence, sync_mode, runtime_root }: SandboxProfile) {
  if (backend !== BACKEND) return `the backend is ${JSON.stringify(backend)}, and only ${BACKEND} is supported`
  if (daytona) return `daytona does not belong to ${BACKEND}`
  if (network?.allow_list?.length || network?.deny_list?.length)
    return 'network lists by host cannot be enforced; set network.allow_outbound to true or false'
  if (network?.allow_public_ingress) return 'network.allow_public_ingress cannot be enforced'
  const unread = Object.entries({ persistence, sync_mode, runtime_root }).find(([, value]) => value)
  return unread && `${unread[0]} has no effect for ${BACKEND}; remove it`
}
