import { authoritiesOf, clip, type Instance, InstanceProblem, unbound } from '../../bridge-kit/src/index.js'
import { isAddress } from './addresses.js'
import { type OauthConfig, Tokens } from './tokens.js'

export type Security = 'tls' | 'starttls' | 'none'

/** A server and its login. */
export interface ServerConfig {
  readonly host: string
  readonly port: number
  readonly security: Security
  /** Empty: no login. */
  readonly user: string
  readonly login: Login
}

/** The credentials of a login. */
export type Login =
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'oauth2'; readonly tokens: Tokens }

/** Validated settings of a mailbox. */
export interface EmailConfig {
  readonly address: string
  /** All addresses of the bot in lower case, {@link address} included. */
  readonly own: ReadonlySet<string>
  readonly fromName: string
  readonly imap: ServerConfig
  readonly smtp: ServerConfig
  readonly verify: boolean
  /** Trusted certificate authorities of the servers; undefined: those of Node. */
  readonly authorities: readonly string[] | undefined
  readonly mailbox: string
  readonly trustedAuthservId: string | undefined
  readonly sentFolder: string | undefined
  readonly sentCopies: 'adapter' | 'server'
  readonly markSeen: boolean
  readonly idleMs: number
}

const ONE_WORD = /^[^\p{Cc}\s]{1,255}$/u
const ONE_LINE = /^\P{Cc}{1,255}$/u
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): EmailConfig {
  const { config } = instance
  const optional = (key: string, form: RegExp): string | undefined => {
    const value = config[key]
    if (value === undefined || (typeof value === 'string' && form.test(value))) return value
    throw wrong(key, value)
  }
  const text = (key: string, fallback: string | undefined, form: RegExp): string => {
    const value = optional(key, form) ?? fallback
    if (value === undefined) throw wrong(key, value)
    return value
  }
  const oneOf = <T extends string>(key: string, allowed: readonly T[], fallback: T): T => {
    const value = config[key] ?? fallback
    if (allowed.includes(value as T)) return value as T
    throw wrong(key, value)
  }
  const flag = (key: string, fallback: boolean): boolean => {
    const value = config[key] ?? fallback
    if (typeof value === 'boolean') return value
    throw wrong(key, value)
  }
  const number = (key: string, fallback: number, most: number): number => {
    const value = config[key] ?? fallback
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number
    throw wrong(key, value)
  }
  const address = (key: string, value: unknown): string => {
    if (typeof value === 'string' && isAddress(value)) return value
    throw wrong(key, value)
  }
  const own = address('address', config.address)
  const aliases = config.aliases ?? []
  if (!Array.isArray(aliases) || aliases.length > 20) throw wrong('aliases', aliases)
  const secret = (slot: string): string => {
    const value = instance.secret(slot)
    if (value === undefined) throw unbound(instance, [slot])
    return value
  }
  const oauth = (): OauthConfig => ({
    tokenUrl: tokenUrlOf(config.login_url),
    clientId: text('login_client_id', undefined, ONE_WORD),
    clientSecret: instance.secret('oauth_client_secret'),
    refreshToken: secret('oauth_refresh_token'),
    scope: optional('login_scope', ONE_LINE),
  })
  const login: Login =
    oneOf('login', ['password', 'oauth2'] as const, 'password') === 'oauth2'
      ? { kind: 'oauth2', tokens: new Tokens(oauth()) }
      : { kind: 'password', password: secret('password') }
  const relay = instance.secret('smtp_password')
  const server = (kind: 'imap' | 'smtp', ports: Readonly<Record<Security, number>>): Omit<ServerConfig, 'user'> => {
    const host = text(`${kind}_host`, undefined, ONE_WORD)
    const security = oneOf<Security>(`${kind}_security`, ['tls', 'starttls', 'none'], 'tls')
    if (security === 'none' && !LOOPBACK.test(host))
      throw problem(`provider_config.${kind}_security: none would send the password to ${host} in the clear`)
    const own: Login = kind === 'smtp' && relay !== undefined ? { kind: 'password', password: relay } : login
    return { host, port: number(`${kind}_port`, ports[security], 65535), security, login: own }
  }
  const imapUser = text('imap_user', own, ONE_WORD)
  return {
    address: own,
    own: new Set([own, ...aliases.map(alias => address('aliases', alias))].map(one => one.toLowerCase())),
    fromName: text('from_name', clip(instance.displayName.replace(/\p{Cc}/gu, ' '), 100), ONE_LINE),
    imap: { ...server('imap', { tls: 993, starttls: 143, none: 143 }), user: imapUser },
    smtp: {
      ...server('smtp', { tls: 465, starttls: 587, none: 587 }),
      user: config.smtp_user === '' ? '' : text('smtp_user', imapUser, ONE_WORD),
    },
    verify: flag('tls_verify', true),
    authorities: authoritiesOf(config.tls_ca),
    mailbox: text('mailbox', 'INBOX', ONE_LINE),
    trustedAuthservId: optional('trusted_authserv_id', ONE_WORD)?.toLowerCase(),
    sentFolder: optional('sent_folder', ONE_LINE),
    sentCopies: oneOf('sent_copies', ['adapter', 'server'] as const, 'adapter'),
    markSeen: flag('mark_seen', true),
    idleMs: number('idle_seconds', 120, 1680) * 1000,
  }
}

/** The refresh token is sent to this URL, so it must use TLS or loopback. */
function tokenUrlOf(value: unknown): string {
  const url = typeof value === 'string' && value.length <= 2048 ? URL.parse(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname))
  if (url && isSafe && url.username === '' && url.password === '') return url.href
  throw problem('provider_config.login_url: it has to be an address with https:')
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })

const wrong = (key: string, value: unknown) =>
  problem(`provider_config.${key}: ${clip(JSON.stringify(value) ?? 'absent', 80)} is not allowed here`)
