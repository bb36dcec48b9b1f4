import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type XOAuth2 from 'nodemailer/lib/xoauth2'
import {
  clip,
  type Delivery,
  type DeliveryResult,
  InstanceProblem,
  messageOf,
  NotSent,
  tlsProblem,
} from '../../bridge-kit/src/index.js'
import { answerId, isAddress, isMessageId } from './addresses.js'
import type { EmailConfig } from './config.js'

const CONNECT_MS = 10_000
const SILENCE_MS = 30_000
/** Retry delay when a server temporarily refuses mail, as in greylisting. */
const LATER_MS = 60_000
const LONGEST_SUBJECT = 120

/** A message ready to be sent. */
export interface Composed {
  readonly id: string
  readonly to: string
  readonly bytes: Buffer
}

/**
 * Composes an answer.
 * @throws NotSent If the target is not an address
 */
export async function compose(delivery: Delivery, config: EmailConfig, subject: string | undefined): Promise<Composed> {
  const { target, text, nonce, reply_to_message_id: replyTo } = delivery
  const to = target.peer_id ?? ''
  if (!isAddress(to))
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(to, 80))} is not one e-mail address`)
  if (config.own.has(to.toLowerCase())) throw new NotSent('unknown_destination', `${to} is the bot itself`)
  const id = answerId(nonce, config.address)
  const before = [target.thread_id, replyTo].filter(known => known !== undefined).filter(isMessageId)
  const references = [...new Set(before)].map(known => `<${known}>`)
  const inReplyTo = references.at(-1)
  const composer = new MailComposer({
    from: { name: config.fromName, address: config.address },
    to: { name: '', address: to },
    subject: subjectOf(subject, text),
    messageId: `<${id}>`,
    ...(inReplyTo === undefined ? {} : { inReplyTo, references }),
    headers: {
      // Tells auto-responders, other bots included, not to answer.
      'Auto-Submitted': inReplyTo === undefined ? 'auto-generated' : 'auto-replied',
      'X-Auto-Response-Suppress': 'All',
    },
    text,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return { id, to, bytes: await composer.compile().build() }
}

function subjectOf(subject: string | undefined, text: string): string {
  const plain = (subject ?? text.split('\n').find(line => line.trim() !== '') ?? '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  const characters = [...plain]
  const short = characters.length > LONGEST_SUBJECT ? `${characters.slice(0, LONGEST_SUBJECT - 1).join('')}…` : plain
  return subject === undefined || /^re:/i.test(short) ? short : `Re: ${short}`
}

/**
 * Sends a message over its own connection. The result is `unknown` only if the connection fails between the start of the content
 * and the server's reply to it.
 */
export async function send(message: Composed, config: EmailConfig): Promise<DeliveryResult> {
  let isTransmitting = false
  const session = new SmtpSession(config)
  try {
    await session.open()
    // The library reads the content only after the server accepts DATA.
    const content = new Readable({
      read() {
        isTransmitting = true
        this.push(message.bytes)
        this.push(null)
      },
    })
    const envelope = { from: config.address, to: [message.to], size: message.bytes.length }
    await session.whole<unknown>(done => session.connection.send(envelope, content, done))
    return { status: 'delivered', remote_message_id: message.id }
  } catch (error) {
    return failed(error as SmtpError, isTransmitting, config)
  } finally {
    session.close()
  }
}

/** Logs in to the SMTP server without sending. Rejects with the reason if it fails. */
export async function tryLogin(config: EmailConfig): Promise<void> {
  const session = new SmtpSession(config)
  try {
    await session.open()
  } finally {
    session.close()
  }
}

/** Errors of the SMTP library. */
interface SmtpError extends Error {
  readonly code?: string
  readonly responseCode?: number
}

class SmtpSession {
  readonly connection: SMTPConnection
  /** Rejects when the connection ends. */
  readonly #over: Promise<never>

  constructor(private readonly config: EmailConfig) {
    const { smtp, verify, authorities } = config
    this.connection = new SMTPConnection({
      host: smtp.host,
      port: smtp.port,
      secure: smtp.security === 'tls',
      requireTLS: smtp.security === 'starttls',
      ignoreTLS: smtp.security === 'none',
      tls: { rejectUnauthorized: verify, ...(authorities === undefined ? {} : { ca: [...authorities] }) },
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
    })
    this.#over = new Promise((_, reject) => {
      this.connection.on('error', reject)
      this.connection.on('end', () => reject(new Error('the server closed the connection')))
    })
    this.#over.catch(() => {})
  }

  async open(): Promise<void> {
    const { user, login, security, host } = this.config.smtp
    await this.whole(done => this.connection.connect(done)).catch(error => {
      const tls = security === 'none' ? undefined : tlsProblem((error as { cause?: unknown }).cause ?? error, host)
      throw tls === undefined ? error : new Error(tls)
    })
    if (user === '') return
    if (login.kind === 'password') {
      await this.whole(done => this.connection.login({ user, credentials: { user, pass: login.password } }, done))
      return
    }
    const token = await login.tokens.get()
    try {
      const oauth2 = bearer(user, token) as unknown as XOAuth2
      await this.whole(done => this.connection.login({ user, oauth2 }, done))
      login.tokens.taken(token)
    } catch (error) {
      // A token may be revoked before it expires; the next attempt uses a new one.
      if ((error as SmtpError).code === 'EAUTH' && login.tokens.refused(token))
        throw new NotSent('transient_delivery_failure', `${host} no longer accepts the access token`)
      throw error
    }
  }

  /** Runs one SMTP step; rejects when the connection ends. */
  whole<T>(step: (done: (error?: Error | null, result?: T) => void) => void): Promise<T | undefined> {
    const stepped = new Promise<T | undefined>((resolve, reject) => {
      step((error, result) => (error ? reject(error) : resolve(result)))
    })
    stepped.catch(() => {})
    return Promise.race([stepped, this.#over])
  }

  close(): void {
    this.connection.close()
  }
}

/** An access token in the form that the library expects. */
const bearer = (user: string, token: string) => ({
  getToken: (renew: boolean, done: (error: Error | null, token?: string) => void) =>
    renew ? done(new Error('the access token is refused')) : done(null, token),
  buildXOAuth2Token: (value: string) =>
    Buffer.from(`user=${user}\x01auth=Bearer ${value}\x01\x01`, 'utf8').toString('base64'),
})

/** The delivery result of a failed attempt. */
function failed(error: SmtpError, isTransmitting: boolean, { smtp }: EmailConfig): DeliveryResult {
  if (error instanceof NotSent) return error.toResult()
  if (error instanceof InstanceProblem) return new NotSent('missing_token', error.message).toResult()
  const { code, responseCode } = error
  const said = clip(`${smtp.host}: ${messageOf(error)}`.replace(/\s+/g, ' '), 300)
  // A server reply is final. Without one, the message may have been accepted once its content was being sent.
  if (responseCode === undefined && isTransmitting) return { status: 'unknown', message: said }
  const later = { retryAfterMs: LATER_MS }
  if (code === 'EAUTH' && !(responseCode !== undefined && responseCode < 500))
    return new NotSent('missing_token', said).toResult()
  if (responseCode === undefined) return new NotSent('transient_delivery_failure', said).toResult()
  if (responseCode < 500) return new NotSent('transient_delivery_failure', said, later).toResult()
  return new NotSent(
    code === 'EENVELOPE' && !isTransmitting ? 'unknown_destination' : 'permission_denied',
    said,
  ).toResult()
}
