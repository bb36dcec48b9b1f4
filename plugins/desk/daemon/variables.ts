import type { SecretResolver } from '../../../kernel/kit/secret-ref.js'
import type { SecretSet } from '../../../kernel/kit/secret-set.js'
import { isWithheld } from '../../platform/processes/api.js'

/** Shortest value in bytes that can be hidden. A shorter value could be an ordinary word, so it stays visible. */
const HIDDEN_FROM = 8

/**
 * Resolves `env:NAME` from the environment of the daemon; an empty variable counts as missing. A resolved value is hidden from
 * then on.
 */
export const variablesOf = (
  env: Readonly<Record<string, string | undefined>>,
  hidden: SecretSet,
  known = new Set<string>(),
): SecretResolver => ({
  scheme: 'env',
  resolve: name => {
    const value = isWithheld(name) ? undefined : env[name] || undefined
    if (value !== undefined && !known.has(name) && Buffer.byteLength(value.trim()) >= HIDDEN_FROM)
      hidden.hide(value, { name: `env:${name}` })
    known.add(name)
    return value
  },
  missing: name =>
    isWithheld(name)
      ? { why: `${name} is reserved for the daemon`, next: 'name another variable' }
      : {
          why: `the daemon has no variable ${name}`,
          next: `set ${name} in the environment of the daemon and start it again`,
        },
})
