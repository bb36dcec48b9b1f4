import { createHash } from 'node:crypto'
import { jid } from '@xmpp/client-core'
import { authoritiesOf, clip, type Instance, InstanceProblem, unbound } from '../../bridge-kit/src/index.js'

/** Validated settings of an instance. */
export interface XmppConfig {
  /** Bare JID of the account. */
  readonly account: string
  readonly username: string
  readonly domain: string
  readonly password: string
  /** `xmpp://host:port`, or `xmpps://host:port` for direct TLS; undefined: looked up in the DNS. */
  readonly service: string | undefined
  /** Require encryption before the password is sent. */
  readonly encrypted: boolean
  /** Trusted certificate authorities of the server; undefined: those of Node. */
  readonly authorities: readonly string[] | undefined
  /** Identical at each start, so that a new connection replaces the previous one. */
  readonly resource: string
  readonly nick: string
  readonly rooms: readonly string[]
  readonly catchUpMs: number
  readonly pingSeconds: number
}

const BARE = /^[^\p{Cc}\s@/"&'<>:]{1,255}@[^\p{Cc}\s@/"&'<>:]{1,255}$/u
const HOST = /^[^\p{Cc}\s/@]{1,255}$/u
const NICK = /^[^\p{Cc}\n]{1,100}$/u

/** Reads `provider_config` and the secrets. @throws InstanceProblem If they are invalid */
export function configOf(instance: Instance): XmppConfig {
  const { config } = instance
  const text = (key: string, fallback: string | undefined, form: RegExp): string => {
    const value = config[key] ?? fallback
    if (typeof value === 'string' && form.test(value)) return value
    throw wrong(key, value)
  }
  const number = (key: string, fallback: number, least: number, most: number): number => {
    const value = config[key] ?? fallback
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
    throw wrong(key, value)
  }
  const address = jid(text('jid', undefined, BARE).toLowerCase())
  const tls = config.tls ?? 'starttls'
  if (tls !== 'starttls' && tls !== 'direct' && tls !== 'none') throw wrong('tls', tls)
  const server = config.server === undefined ? undefined : text('server', undefined, HOST)
  const port = number('port', tls === 'direct' ? 5223 : 5222, 1, 65535)
  const password = instance.secret('password')
  if (password === undefined) throw unbound(instance, ['password'])
  const rooms = config.rooms ?? []
  if (!Array.isArray(rooms) || rooms.length > 100) throw wrong('rooms', rooms)
  for (const room of rooms) if (typeof room !== 'string' || !BARE.test(room)) throw wrong('rooms', room)
  const hash = createHash('sha256').update(`${instance.id} ${address}`).digest('hex')
  const scheme = tls === 'direct' ? 'xmpps' : 'xmpp'
  const explicit = server !== undefined || config.port !== undefined || tls === 'direct'
  return {
    account: address.toString(),
    username: address.local,
    domain: address.domain,
    password,
    service: explicit ? `${scheme}://${server ?? address.domain}:${port}` : undefined,
    encrypted: tls !== 'none',
    authorities: authoritiesOf(config.tls_ca),
    resource: `svc-${hash.slice(0, 12)}`,
    nick: text('nick', address.local, NICK),
    rooms: [...new Set((rooms as string[]).map(room => room.toLowerCase()))],
    catchUpMs: number('catch_up_minutes', 10, 0, 1440) * 60_000,
    pingSeconds: number('ping_seconds', 30, 1, 600),
  }
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })

const wrong = (key: string, value: unknown) =>
  problem(`provider_config.${key}: ${clip(JSON.stringify(value) ?? 'absent', 80)} is not allowed here`)
