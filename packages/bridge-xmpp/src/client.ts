import { resolveSrv } from 'node:dns/promises'
import { StringDecoder } from 'node:string_decoder'
import { Client } from '@xmpp/client-core'
import iqCallee from '@xmpp/iq/callee.js'
import iqCaller, { type IqCaller } from '@xmpp/iq/caller.js'
import createMiddleware from '@xmpp/middleware'
import resourceBinding from '@xmpp/resource-binding'
import sasl from '@xmpp/sasl'
import plain from '@xmpp/sasl-plain'
import scram from '@xmpp/sasl-scram-sha-1'
import starttls from '@xmpp/starttls'
import createStreamFeatures from '@xmpp/stream-features'
import tcp from '@xmpp/tcp'
import tls from '@xmpp/tls'
import Factory from 'saslmechanisms'
import type { XmppConfig } from './config.js'
import { NS } from './stanzas.js'

/** Bytes of one stanza; a server that sends more is broken. */
const LONGEST_STANZA = 16 * 1024 * 1024

/** What a client is made with. */
export interface ClientOptions {
  readonly config: XmppConfig
  readonly service: string
  readonly timeoutMs: number
  /** Something came. */
  readonly heard: () => void
  /** The server went beyond a bound. */
  readonly tooMuch: (what: string) => void
  /** Makes the error of a login that is not begun. */
  readonly refuse: (why: string) => Error
}

/**
 * A client of one connection. It is composed of parts of @xmpp/client without its stream management: that counts stanzas wrongly
 * when some come while it is being enabled, and sends again by itself after a resumption what the daemon settles and sends again,
 * too. Nor does it connect again by itself. A login binds exactly the resource of the configuration.
 */
export function createClient(options: ClientOptions): { readonly client: Client; readonly iq: IqCaller } {
  const { config, service, timeoutMs, heard, tooMuch, refuse } = options
  const entity = new Client({ service, domain: config.domain, timeout: timeoutMs })
  tcp({ entity })
  tls({ entity })
  const middleware = createMiddleware({ entity })
  const streamFeatures = createStreamFeatures({ middleware })
  const iq = iqCaller({ middleware, entity })
  iqCallee({ middleware, entity }).get(NS.ping, 'ping', () => ({}))
  const saslFactory = new Factory()
  scram(saslFactory)
  plain(saslFactory)
  // The order is that of the negotiation.
  starttls({ streamFeatures })
  sasl({ streamFeatures, saslFactory }, async (authenticate, mechanisms) => {
    const secure = entity.isSecure()
    if (config.encrypted && !secure) throw refuse('the server offers no encryption; set tls: none if that is right')
    const mechanism = mechanisms.find(name => secure || name !== 'PLAIN')
    if (mechanism === undefined) throw refuse('the server offers no way of login that the adapter knows')
    await authenticate({ username: config.username, password: config.password }, mechanism)
  })
  resourceBinding({ iqCaller: iq, streamFeatures }, config.resource)
  // The library decodes each packet by itself, which breaks characters that two packets share.
  const decoder = new StringDecoder('utf8')
  let bytes = 0
  entity._onData = data => {
    heard()
    bytes += data.length
    if (bytes > LONGEST_STANZA) tooMuch(`a stanza of more than ${LONGEST_STANZA} bytes`)
    else entity.parser?.write(typeof data === 'string' ? data : decoder.write(data))
  }
  entity.on('element', () => {
    bytes = 0
  })
  // A message and the question behind it would wait for each other's acknowledgement.
  entity.on('connect', () => {
    entity.socket?.setNoDelay?.(true)
    entity.socket?.socket?.setNoDelay(true)
  })
  return { client: entity, iq }
}

/** Where the server of the account is, as its domain says in the DNS unless the configuration does. */
export async function serviceOf({ service, domain }: XmppConfig): Promise<string> {
  if (service !== undefined) return service
  const records = await resolveSrv(`_xmpp-client._tcp.${domain}`).catch(() => [])
  const [first] = records.sort((a, b) => a.priority - b.priority || b.weight - a.weight)
  return first === undefined || first.name === '' ? `xmpp://${domain}:5222` : `xmpp://${first.name}:${first.port}`
}
