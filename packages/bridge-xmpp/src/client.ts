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
  // The order is that of the negotiation.
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

/**
 * The certificate has to be for the domain of the account: the host that is connected to comes from the DNS, or serves many
 * domains. The library itself checks the host when TLS comes first, and names no domain to a server that has to choose.
 */
function encryptionOf({ domain, authorities }: XmppConfig): TlsOptions {
  return {
    ...(isIP(domain) === 0 ? { servername: domain } : {}),
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
    checkServerIdentity: (_, certificate) => checkServerIdentity(domain, certificate),
  }
}

/** Where the server of the account is, as its domain says in the DNS unless the configuration does. */
export async function serviceOf({ service, domain }: XmppConfig): Promise<string> {
  if (service !== undefined) return service
  const records = await resolveSrv(`_xmpp-client._tcp.${domain}`).catch(() => [])
  const [first] = records.sort((a, b) => a.priority - b.priority || b.weight - a.weight)
  return first === undefined || first.name === '' ? `xmpp://${domain}:5222` : `xmpp://${first.name}:${first.port}`
}
