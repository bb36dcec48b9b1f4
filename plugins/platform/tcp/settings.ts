import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'

const HOST = v.pipe(v.string(), v.minLength(1), v.maxLength(253))
const HOST_NAME = v.pipe(
  v.string(),
  v.maxLength(260),
  v.regex(
    /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/,
    'a host name, optionally with a port',
  ),
)
const PORT = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65535))

const setting = settingsSection({ path: 'http', section: 'general', apply: 'restart-required' })
const live = settingsSection({ path: 'http', section: 'general', apply: 'live' })

/** Settings of the TCP listener. */
export const TcpSettings = {
  /** `auto` is accepted from older configurations, and has the effect of true. */
  enabled: setting('enabled', v.union([v.boolean(), v.literal('auto')]), 'auto'),
  host: setting('host', HOST, 'localhost'),
  port: setting('port', PORT, 2123),
  /** Further names for the Host header, with a port or for any port. */
  allowedHosts: live('allowed_hosts', v.pipe(v.array(HOST_NAME), v.maxLength(100)), []),
  /** Requires a token for all but `public` routes. False: every caller over a loopback name is the operator. */
  requireToken: setting('require_token', v.boolean(), true),
  /** The plugin that must run before requests are served. Required beyond loopback. */
  authenticator: setting('authenticator', v.string(), ''),
  /** Processes of the daemon's own user need no token over loopback, where the system reveals the user. */
  trustOwnUser: setting('trust_own_user', v.boolean(), false),
  /** Files in PEM, absolute or relative to the home; with both, TCP speaks TLS only. */
  cert: setting('tls.cert', v.string(), ''),
  key: setting('tls.key', v.string(), ''),
  /** Allows plain text beyond loopback: a proxy adds TLS, or the network is private. */
  plaintext: setting('plaintext', v.boolean(), false),
}
