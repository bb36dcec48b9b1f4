import * as v from 'valibot'
import { secretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'

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
  'NATS servers between daemons, each `nats://host:port` or `tls://host:port`; empty: no connection to other daemons',
)
export const RealmSetting = setting('realm', orEmpty(Realm), '', 'Name shared by the daemons that talk to each other')
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
  'PEM file with the CA certificates that verify the NATS server; empty: the system certificates',
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
export const natsSettings = [Servers, RealmSetting, Credentials, TlsCa, TlsCert, TlsKey]
