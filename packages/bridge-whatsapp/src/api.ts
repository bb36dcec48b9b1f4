import {
  bytesOf,
  clip,
  type DeliveryResult,
  type HttpReply,
  http,
  NotSent,
  type NotSentKind,
  objectOf,
} from '../../bridge-kit/src/index.js'
import type { Media } from './event.js'

/** Bytes of one file that the daemon accepts. */
const MOST_FILE_BYTES = 8 * 1024 * 1024
const FILE_MS = 20_000
/** Meta's file hosts; no other host may receive the token. */
const FILE_HOST = /(?:^|\.)(?:fbsbx\.com|fbcdn\.net|facebook\.com|whatsapp\.net)$/

/** Delays in milliseconds after rate limits, which name none, by error code. */
const WAITS: Readonly<Record<number, number>> = {
  4: 60_000,
  80007: 60_000,
  130429: 5000,
  131048: 15 * 60_000,
  131056: 10_000,
  131057: 60_000,
  133016: 60_000,
}
/** Error codes after which a retry may succeed. */
const TRANSIENT = new Set([1, 2, 131000, 131016])
/** Other error codes: kind of failure and remedy. */
const MEANINGS: Readonly<Record<number, readonly [NotSentKind, string]>> = {
  131047: [
    'permission_denied',
    'more than 24 hours have passed since this person wrote last. WhatsApp takes only an approved template then: send one in WhatsApp Manager, or wait for a message',
  ],
  131026: [
    'unknown_destination',
    'the recipient cannot get it: no WhatsApp account, an old version, or terms not accepted',
  ],
  131030: ['permission_denied', 'the number is not on the list of recipients of a test number: add it under API Setup'],
  131021: ['unknown_destination', 'sender and recipient are the same number'],
  131031: ['permission_denied', 'the business account is locked: see WhatsApp Manager'],
  131042: ['permission_denied', 'the payment method of the business account is not accepted: see WhatsApp Manager'],
  131045: ['permission_denied', 'the number is not registered: register it in WhatsApp Manager'],
  131049: ['permission_denied', 'Meta holds it back to limit messages to this person'],
  131050: ['permission_denied', 'this person has blocked messages from the business'],
  130472: ['permission_denied', 'Meta holds it back for an experiment'],
  130497: ['permission_denied', 'the business may not write to this country'],
  133010: ['permission_denied', 'the number is not registered: register it in WhatsApp Manager'],
  33: ['unknown_destination', 'the business number was deleted: check provider_config.phone_number_id'],
  368: ['permission_denied', 'the business account is blocked for violations of a policy: see WhatsApp Manager'],
}
const PERMISSION = new Set([3, 10, 131005])

/** The Graph API for one business number. */
export class WhatsappApi {
  constructor(
    private readonly url: string,
    private readonly number: string,
    private readonly token: string,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * The displayed phone number.
   * @throws NotSent, Error If the lookup fails
   */
  async whoAmI(): Promise<string> {
    const reply = await this.#call('GET', `/${this.number}?fields=display_phone_number,verified_name`)
    const { display_phone_number: shown } = objectOf(reply.text)
    if (reply.status !== 200) throw failureOf(reply)
    return typeof shown === 'string' ? shown : this.number
  }

  /** Sends one text. The result carries the message id. */
  async send(to: object, text: string, replyTo: string | undefined): Promise<DeliveryResult> {
    const reply = await this.#call('POST', `/${this.number}/messages`, {
      messaging_product: 'whatsapp',
      ...to,
      ...(replyTo === undefined ? {} : { context: { message_id: replyTo } }),
      type: 'text',
      text: { preview_url: false, body: text },
    })
    if (reply.status < 200 || reply.status >= 300) {
      const failure = failureOf(reply)
      if (failure instanceof NotSent) throw failure
      return { status: 'unknown', message: failure.message }
    }
    const { messages } = objectOf(reply.text)
    const id = Array.isArray(messages) ? (messages[0] as { id?: unknown } | null)?.id : undefined
    return typeof id === 'string'
      ? { status: 'delivered', remote_message_id: clip(id, 512) }
      : { status: 'unknown', message: 'WhatsApp returned no message id' }
  }

  /**
   * The bytes of a file in base64, or why it is unavailable.
   * @throws Error If the download fails
   */
  async file({ id }: Media): Promise<{ readonly data: string } | { readonly missing: string }> {
    const reply = await this.#call('GET', `/${id}?phone_number_id=${this.number}`)
    if (reply.status !== 200) throw failureOf(reply)
    const { url, file_size: size } = objectOf(reply.text)
    if (Number(size) > MOST_FILE_BYTES) return { missing: 'it is larger than 8 MiB' }
    if (typeof url !== 'string' || !this.#isOfMeta(url)) return { missing: 'its address is not one of Meta' }
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${this.token}`, 'user-agent': 'svc-bridge-whatsapp' },
      redirect: 'error',
      signal: AbortSignal.any([this.signal, AbortSignal.timeout(FILE_MS)]),
    })
    if (!response.ok) throw new Error(`WhatsApp answered ${response.status} for a file`)
    const bytes = await bytesOf(response, MOST_FILE_BYTES)
    return bytes ? { data: bytes.toString('base64') } : { missing: 'it is larger than 8 MiB' }
  }

  #isOfMeta(url: string): boolean {
    if (!URL.canParse(url)) return false
    const { protocol, hostname, origin } = new URL(url)
    return (protocol === 'https:' && FILE_HOST.test(hostname)) || origin === new URL(this.url).origin
  }

  #call(method: 'GET' | 'POST', path: string, body?: object): Promise<HttpReply> {
    return http({
      method,
      url: this.url + path,
      headers: {
        authorization: `Bearer ${this.token}`,
        'user-agent': 'svc-bridge-whatsapp',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: this.signal,
    })
  }
}

/** The error of an unsuccessful response: a {@link NotSent} if the request had no effect. */
function failureOf({ status, text, retryAfterMs }: HttpReply): Error {
  const { error } = objectOf(text) as { error?: { code?: unknown; message?: unknown; error_data?: unknown } }
  const code = Number(error?.code) || 0
  const details = (error?.error_data as { details?: unknown } | null | undefined)?.details
  const message = clip(String(details ?? error?.message ?? ''), 200)
  if (status === 401 && code === 0) return refusalOf(190, message)
  if (status === 429 && code === 0) return refusalOf(80007, message, retryAfterMs)
  if (code !== 0) return refusalOf(code, message, retryAfterMs)
  const said = `WhatsApp answered ${status}`
  return status >= 300 && status < 500 ? new NotSent('unsupported_capability', said) : new Error(said)
}

/** The error of a message refused with a WhatsApp error code. */
export function refusalOf(code: number, details: string, retryAfterMs?: number): NotSent {
  const said = ['WhatsApp refused the request:', code || '', details].filter(Boolean).join(' ')
  if (code === 190) return new NotSent('missing_token', `${said}: bind a valid access_token of a system user`)
  const wait = Object.hasOwn(WAITS, code) ? WAITS[code] : undefined
  if (wait !== undefined)
    return new NotSent('transient_delivery_failure', `${said}: a limit`, { retryAfterMs: retryAfterMs ?? wait })
  if (TRANSIENT.has(code)) return new NotSent('transient_delivery_failure', said)
  const [kind, advice] = (Object.hasOwn(MEANINGS, code) && MEANINGS[code]) || []
  if (kind !== undefined) return new NotSent(kind, `${said}: ${advice}`)
  if (PERMISSION.has(code) || (code >= 200 && code < 300))
    return new NotSent('permission_denied', `${said}: give the token the permission whatsapp_business_messaging`)
  return new NotSent('unsupported_capability', said)
}
