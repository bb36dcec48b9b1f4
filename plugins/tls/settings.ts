import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

const common = { section: 'general', apply: 'restart-required' } as const

/** How TCP is served. */
export const TlsSettings = {
  /** Files in PEM, absolute or relative to the home; with both, TCP speaks TLS only. */
  cert: { ...common, path: 'http.tls.cert', schema: v.string(), default: '' } as Setting<string>,
  key: { ...common, path: 'http.tls.key', schema: v.string(), default: '' } as Setting<string>,
  /** Serves beyond loopback without TLS: something in front of the port does it, or the network is private. */
  plaintext: { ...common, path: 'http.plaintext', schema: v.boolean(), default: false } as Setting<boolean>,
}
