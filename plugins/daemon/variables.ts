import type { SecretResolver } from '../../kernel/kit/secret-ref.js'

/** Secrets in the environment of the daemon, `env:NAME`; an empty variable is none. */
export const variablesOf = (env: Readonly<Record<string, string | undefined>>): SecretResolver => ({
  scheme: 'env',
  resolve: name => env[name] || undefined,
  missing: name => ({
    why: `the daemon has no variable ${name}`,
    next: `set ${name} in the environment of the daemon and start it again`,
  }),
})
