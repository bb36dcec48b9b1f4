import { authoritiesOf, clip, type Instance, InstanceProblem, unbound } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface IrcConfig {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  readonly verify: boolean
  /** Trusted certificate authorities of the server; undefined: those of Node. */
  readonly ca: readonly string[] | undefined
  readonly nick: string
  readonly username: string
  readonly realname: string
  readonly account: string
  readonly auth: 'sasl' | 'nickserv' | 'none'
  readonly password: string | undefined
  readonly serverPassword: string | undefined
  readonly channels: readonly string[]
  /** Channel keys by channel name as configured. */
  readonly keys: ReadonlyMap<string, string>
  /** Burst of lines, and sustained lines per minute. */
  readonly burst: number
  readonly linesPerMinute: number
  readonly pingSeconds: number
}

const NICK = /^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,62}$/
const CHANNEL = /^[#&+!][^\p{Cc} ,:]{1,199}$/u
const KEY = /^[^\p{Cc}\s,:][^\p{Cc}\s,]{0,49}$/u
// A line break would start another command.
const ONE_WORD = /^[^\p{Cc} ]+$/u
const ONE_LINE = /^\P{Cc}+$/u

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): IrcConfig {
  const { config } = instance
  const text = (key: string, fallback: string, form: RegExp): string => {
    const value = config[key] ?? fallback
    if (typeof value === 'string' && form.test(value)) return value
    throw wrong(key, value)
  }
  const flag = (key: string, fallback: boolean): boolean => {
    const value = config[key] ?? fallback
    if (typeof value === 'boolean') return value
    throw wrong(key, value)
  }
  const number = (key: string, fallback: number, least: number, most: number): number => {
    const value = config[key] ?? fallback
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
    throw wrong(key, value)
  }
  const channels = config.channels ?? []
  if (!Array.isArray(channels) || channels.length > 100) throw wrong('channels', channels)
  for (const channel of channels)
    if (typeof channel !== 'string' || !CHANNEL.test(channel)) {
      // The text after a blank may be the channel's key, which must not be shown.
      const keyed = typeof channel === 'string' && /^[#&+!]\S+ /.test(channel)
      throw keyed
        ? problem(`provider_config.channels: bind the keys of channels as secret channel_keys`)
        : wrong('channels', channel)
    }
  const secret = (slot: string): string | undefined => {
    const value = instance.secret(slot)
    if (value !== undefined && !ONE_WORD.test(value))
      throw problem(`the secret ${slot} has a space or a control character`)
    return value
  }
  const tls = flag('tls', true)
  const nick = text('nick', '', NICK)
  const password = secret('password')
  // A setting named `auth` would be treated as a secret.
  const auth = config.login ?? (password === undefined ? 'none' : 'sasl')
  if (auth !== 'sasl' && auth !== 'nickserv' && auth !== 'none') throw wrong('login', auth)
  if (auth !== 'none' && password === undefined)
    throw unbound(instance, ['password'], `provider_config.login is ${auth}`)
  return {
    host: text('server', '', ONE_WORD),
    port: number('port', tls ? 6697 : 6667, 1, 65535),
    tls,
    verify: flag('tls_verify', true),
    ca: authoritiesOf(config.tls_ca),
    nick,
    username: text('username', nick.slice(0, 10).replace(/[^A-Za-z0-9]/g, 'x'), ONE_WORD),
    realname: text('realname', instance.displayName.replace(/\p{Cc}/gu, ' ') || nick, ONE_LINE),
    account: text('account', nick, ONE_WORD),
    auth,
    password,
    serverPassword: secret('server_password'),
    channels: [...new Set(channels as string[])],
    keys: keysOf(instance.secret('channel_keys') ?? '', channels as string[]),
    burst: number('flood_burst', 8, 1, 100),
    linesPerMinute: number('flood_lines_per_minute', 60, 1, 6000),
    pingSeconds: number('ping_seconds', 30, 1, 600),
  }
}

/** Parses channel keys, `#ops key`, separated by line breaks or commas. The text is secret: errors show no part of it. */
function keysOf(text: string, channels: readonly string[]): Map<string, string> {
  const keys = new Map<string, string>()
  for (const [at, line] of text
    .split(/[\r\n,]+/)
    .filter(line => line.trim() !== '')
    .entries()) {
    const [channel = '', key = '', ...rest] = line.trim().split(/\s+/)
    const known = channels.find(one => one.toLowerCase() === channel.toLowerCase())
    if (rest.length > 0 || !KEY.test(key))
      throw problem(`entry ${at + 1} of the secret channel_keys is no channel with its key, such as "#ops key"`)
    if (known === undefined)
      throw problem(
        `entry ${at + 1} of the secret channel_keys names a channel that is not among provider_config.channels`,
      )
    keys.set(known, key)
  }
  return keys
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })

const wrong = (key: string, value: unknown) =>
  problem(`provider_config.${key}: ${clip(JSON.stringify(value) ?? 'absent', 80)} is not allowed here`)
