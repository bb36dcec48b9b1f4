import { resolveSrv } from 'node:dns/promises'
import { isIP } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { checkServerIdentity, type ConnectionOptions as TlsOptions } from 'node:tls'
import { Client, xml } from '@xmpp/client-core'
import iqCallee from '@xmpp/iq/callee.js'
import iqCaller, { type IqCaller } from '@xmpp/iq/caller.js'
import createMiddleware from '@xmpp/middleware'
import resourceBinding from '@xmpp/resource-binding'
import sasl from '@xmpp/sasl'
import plain from '@xmpp/sasl-plain'
import scram from '@xmpp/sasl-scram-sha-1'
import { canUpgrade, upgrade } from '@xmpp/starttls/starttls.js'
import createStreamFeatures from '@xmpp/stream-features'
import tcp from '@xmpp/tcp'
import tls from '@xmpp/tls'
import Factory from 'saslmechanisms'
import type { XmppConfig } from './config.js'
import { NS } from './stanzas.js'

/** Bytes of one stanza; a server that sends more is broken. */
const LONGEST_STANZA = 16 * 1024 * 1024

/** Options of a client. */
export interface ClientOptions {
  readonly config: XmppConfig
  readonly service: string
  readonly timeoutMs: number
  /** Called on any received data. */
  readonly heard: () => void
  /** Called when the server exceeds a limit. */
  readonly tooMuch: (what: string) => void
  /** Creates the error for a login that is not attempted. */
  readonly refuse: (why: string) => Error
}

/**
 * A client for one connection, composed of parts of @xmpp/client. Stream management is left out: it miscounts stanzas that arrive
 * while it is being enabled, and after a resumption it resends messages that the daemon settles and resends as well. Reconnection
 * is left out too. A login binds exactly the configured resource.
 */
export function createClient(options: ClientOptions): { readonly client: Client; readonly iq: IqCaller } {
  const { config, service, timeoutMs, heard, tooMuch, refuse } = options
  const entity = new Client({ service, domain: config.domain, timeout: timeoutMs })
  const encryption = encryptionOf(config)
  const parameters = entity.socketParameters.bind(entity)
  entity.socketParameters = address =>
    address.startsWith('xmpps:')
      ? { ...parameters(address), ...encryption, ALPNProtocols: ['xmpp-client'] }
      : parameters(address)
  tcp({ entity })
  tls({ entity })
  const middleware = createMiddleware({ entity })
  const streamFeatures = createStreamFeatures({ middleware })
  const iq = iqCaller({ middleware, entity })
  iqCallee({ middleware, entity }).get(NS.ping, 'ping', () => ({}))
  const saslFactory = new Factory()
  scram(saslFactory)
  plain(saslFactory)
  // Registered in the order of the negotiation.
  streamFeatures.use('starttls', NS.tls, async (_: unknown, next: () => unknown) => {
    const { socket } = entity
    if (!config.encrypted || !canUpgrade(socket)) return next()
    const answer = await entity.sendReceive(xml('starttls', { xmlns: NS.tls }))
    if (!answer.is('proceed', NS.tls)) throw new Error('the server offers STARTTLS and then refuses it')
    entity._attachSocket(await upgrade(socket, encryption))
    await entity.restart()
  })
  sasl({ streamFeatures, saslFactory }, async (authenticate, mechanisms) => {
    const secure = entity.isSecure()
    if (config.encrypted && !secure) throw refuse('the server offers no encryption; set tls: none if that is intended')
    const mechanism = mechanisms.find(name => secure || name !== 'PLAIN')
    if (mechanism === undefined) throw refuse('the server offers no login mechanism that the adapter supports')
    await authenticate({ username: config.username, password: config.password }, mechanism)
  })
  resourceBinding({ iqCaller: iq, streamFeatures }, config.resource)
  // The library decodes each packet separately, which breaks characters split over two packets.
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
  // With Nagle's algorithm, a message and the ping after it would wait for each other's acknowledgement.
  entity.on('connect', () => {
    entity.socket?.setNoDelay?.(true)
    entity.socket?.socket?.setNoDelay(true)
  })
  return { client: entity, iq }
}

/**
 * TLS options that check the certificate against the account's domain: the host may come from the DNS or serve many domains. The
 * library alone would check the host in direct TLS, and send no SNI to servers that need it.
 */
function encryptionOf({ domain, authorities }: XmppConfig): TlsOptions {
  return {
    ...(isIP(domain) === 0 ? { servername: domain } : {}),
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
    checkServerIdentity: (_, certificate) => checkServerIdentity(domain, certificate),
  }
}

/** The server's address: as configured, else from the domain's DNS records. */
export async function serviceOf({ service, domain }: XmppConfig): Promise<string> {
  if (service !== undefined) return service
  const records = await resolveSrv(`_xmpp-client._tcp.${domain}`).catch(() => [])
  const [first] = records.sort((a, b) => a.priority - b.priority || b.weight - a.weight)
  return first === undefined || first.name === '' ? `xmpp://${domain}:5222` : `xmpp://${first.name}:${first.port}`
}
