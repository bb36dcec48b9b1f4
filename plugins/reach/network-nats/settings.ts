import * as v from 'valibot'
import { secretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'

const DAY_MS = 24 * 60 * 60_000
const REALM = /^[a-z0-9][a-z0-9_-]{0,31}$/
export const Realm = v.pipe(v.string(), v.regex(REALM, 'Expected a realm like team-1'))
export const ServerUrl = v.pipe(
  v.string(),
  v.maxLength(512),
  v.regex(/^(nats|tls):\/\/[^\s/@?#]+$/, 'Expected a server like nats://host:4222, without a name or a password'),
)
const SCHEMES = { env: '', vault: 'network/' }
export const NetworkSecret = secretRef(SCHEMES)
const File = v.pipe(v.string(), v.maxLength(4096))

const setting = <T>(path: string, schema: v.GenericSchema<unknown, T>, fallback: T, text: string): Setting<T> => ({
  path: `network.nats.${path}`,
  section: 'network',
  schema: v.pipe(schema, v.description(text)) as v.GenericSchema<unknown, T>,
  default: fallback,
  apply: 'live',
})
const orEmpty = (schema: v.GenericSchema<unknown, string>) => v.union([v.literal(''), schema])

export const Servers = setting<string[]>(
  'servers',
  v.pipe(v.array(ServerUrl), v.maxLength(16)),
  [],
  'NATS servers between daemons, each `nats://host:port` or `tls://host:port`; empty: no daemon hears of this one',
)
export const RealmSetting = setting(
  'realm',
  orEmpty(Realm),
  '',
  'Name that daemons which talk to each other have in common',
)
export const Credentials = setting(
  'credentials',
  orEmpty(NetworkSecret),
  '',
  'Reference to the credentials of the NATS server: a .creds file, a seed of an nkey, `user:password` or a token',
)
export const TlsCa = setting(
  'tls.ca',
  File,
  '',
  'File with the certificates that the NATS server is verified by, PEM; empty: those of the system',
)
export const TlsCert = setting(
  'tls.cert',
  File,
  '',
  'File with the certificate chain that the daemon shows the NATS server, PEM',
)
export const TlsKey = setting(
  'tls.key',
  orEmpty(NetworkSecret),
  '',
  'Reference to the private key of `network.nats.tls.cert`, PEM',
)

const offers = <T>(path: string, schema: v.GenericSchema<unknown, T>, fallback: T, text: string): Setting<T> => ({
  ...setting(path, schema, fallback, text),
  path: `network.remote.offers.${path}`,
})
export const OfferAgent = offers(
  'agent',
  v.pipe(v.string(), v.maxLength(128)),
  '',
  'Agent that works on tasks that other daemons offer; empty: none are taken',
)
export const OfferWorkspace = offers(
  'workspace',
  v.pipe(v.string(), v.maxLength(4096)),
  '',
  'Workspace in which offered tasks are worked on; empty: none are taken',
)
export const OffersAtOnce = offers(
  'at_once',
  v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(16)),
  1,
  'How many offered tasks are worked on at once',
)
export const OfferLease = offers<number>(
  'lease',
  v.pipe(Duration, v.minValue(1000, 'at least 1s'), v.maxValue(DAY_MS, 'at most 1d')) as v.GenericSchema<
    unknown,
    number
  >,
  5 * 60_000,
  'How long a peer that took a task may be silent before the task is offered again',
)
export const offerSettings = [OfferAgent, OfferWorkspace, OffersAtOnce, OfferLease]
export const natsSettings = [Servers, RealmSetting, Credentials, TlsCa, TlsCert, TlsKey]
