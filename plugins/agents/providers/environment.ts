import path from 'node:path'
import type { Provider } from './api.js'

type Env = Readonly<Record<string, string | undefined>>

/** Words that mark a secret anywhere in a variable's name: DB_PASS, AWS_SECRET_ACCESS_KEY. */
const SECRET_WORDS = new Set(['PASS', 'PWD', 'PAT', 'JWT', 'DSN', 'BEARER', 'PRIVATE', 'AUTHENTICATION', 'OTP'])
/** Endings of words that mark a secret: OPENAI_APIKEY, `:_authToken`. */
const SECRET_ENDING =
  /(?:KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|CREDENTIALS?|CREDS?|COOKIES?|AUTH|AUTHORIZATION)$/
/** Names that look like secrets but are not: folders, a socket path, token budgets. */
const HARMLESS = /^(?:PWD|OLDPWD|SSH_AUTH_SOCK|(?:.*_)?(?:MAX|MIN|NUM)_(?:.*_)?TOKENS)$/

/** Whether the name of an environment variable suggests that its value is a secret. */
export function looksSecret(name: string): boolean {
  const upper = name.toUpperCase()
  if (HARMLESS.test(upper)) return false
  if (/CONNECTION_?STRING/.test(upper)) return true
  return upper.split(/[^A-Z0-9]+/).some(word => SECRET_WORDS.has(word) || SECRET_ENDING.test(word))
}

/** Variables of the daemon's environment that an isolated process keeps. */
export const ISOLATED = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TERM|TMPDIR)$/

/** PATH of a daemon without one. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

/** The absolute folders of a PATH, the daemon's own first. */
export function searchPath(env: Env): string[] {
  const folders = (env.PATH ?? DEFAULT_PATH).split(path.delimiter).filter(folder => path.isAbsolute(folder))
  return [...new Set(env.SVC_BIN_DIR ? [env.SVC_BIN_DIR, ...folders] : folders)]
}

/** Folders of the daemon that appear in environments. */
export interface Places {
  /** The daemon's home. */
  readonly root: string
  /** HOME of a provider whose `homePolicy` is isolated. */
  readonly isolatedHome: string
}

/** Endpoint variables for the agent of this package; the key is a slot. Values set by the person take precedence. */
const endpointOf = ({ baseUrl, model }: Provider, { isolatedHome }: Places): Record<string, string> => ({
  ...(baseUrl !== undefined && { OPENAI_BASE_URL: baseUrl }),
  ...(model !== undefined && { OPENAI_MODEL: model }),
  SVC_AGENT_STATE: path.join(isolatedHome, 'sessions'),
})

/**
 * Environment of a provider's process: the daemon's, filtered or isolated by policy, without inherited SVC_ variables,
 * with the daemon's bin directory first in PATH and variables about how the process was started.
 */
export function environmentOf(provider: Provider, env: Env, places: Places): Record<string, string> {
  const kept = (name: string) =>
    !name.startsWith('SVC_') &&
    (provider.envAllow?.includes(name) ||
      (provider.envPolicy === 'isolated' ? ISOLATED.test(name) : !looksSecret(name)))
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined && kept(name)) result[name] = value
  if (provider.homePolicy === 'isolated') {
    const below = (...parts: string[]) => path.join(places.isolatedHome, ...parts)
    Object.assign(result, {
      HOME: below(),
      XDG_CONFIG_HOME: below('.config'),
      XDG_DATA_HOME: below('.local', 'share'),
      XDG_STATE_HOME: below('.local', 'state'),
      XDG_CACHE_HOME: below('.cache'),
    })
  }
  return {
    ...result,
    ...provider.env,
    ...(provider.needsEndpoint && endpointOf(provider, places)),
    PATH: searchPath(env).join(path.delimiter),
    ...(env.SVC_BIN_DIR ? { SVC_BIN: path.join(env.SVC_BIN_DIR, 'svc') } : {}),
    SVC_HOME: places.root,
    SVC_PROVIDER: provider.name,
    SVC_PROVIDER_HARNESS: provider.harness,
    SVC_PROVIDER_AUTH_MODE: provider.authMode,
    SVC_PROVIDER_ENV_POLICY: provider.envPolicy,
    SVC_PROVIDER_HOME_POLICY: provider.homePolicy,
  }
}
