import { X509Certificate } from 'node:crypto'
import { clip } from './text.js'
import { InstanceProblem } from './types.js'

const PEM = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----/g
/** Characters of all certificates, and their number. */
const LONGEST = 64 * 1024
const MOST = 20

/**
 * The PEM certificates of a setting. Blanks are accepted in place of line breaks, because the value may have been typed as one
 * line. Undefined: the text contains none, or anything else.
 */
export function certificatesOf(text: string): readonly string[] | undefined {
  if (text.length > LONGEST) return undefined
  const found = [...text.matchAll(PEM)].map(([, body = '']) => {
    const lines = body.replace(/\s+/g, '').match(/.{1,64}/g) ?? []
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
  })
  if (found.length === 0 || found.length > MOST || text.replace(PEM, '').trim() !== '') return undefined
  try {
    for (const certificate of found) new X509Certificate(certificate)
  } catch {
    return undefined
  }
  return found
}

/**
 * The authorities in `provider_config.tls_ca`; undefined: those of Node.
 * @throws InstanceProblem If it contains anything but certificates
 */
export function authoritiesOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === '') return undefined
  const found = typeof value === 'string' ? certificatesOf(value) : undefined
  if (found) return found
  const message = 'provider_config.tls_ca: it has to hold certificates in PEM, -----BEGIN CERTIFICATE-----'
  throw new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
}

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * The TLS problem of a connection, with the remedy; undefined: another kind of error.
 * @param name The name that the certificate must cover
 * @param setting The setting of trusted authorities
 */
export function tlsProblem(error: unknown, name: string, setting = 'tls_ca'): string | undefined {
  const { code = '', message = '' } = Object(error) as { code?: unknown; message?: unknown }
  const about = `${clip(String(message), 200)} (${String(code)})`
  if (UNTRUSTED.has(String(code)))
    return `the certificate is not trusted: ${about}; if it is correct, set ${setting} to the certificate of its authority`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `the certificate is not for ${name}: ${about}`
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') return `the certificate is not valid now: ${about}`
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `the server does not use TLS on this port: ${about}`
  return undefined
}
