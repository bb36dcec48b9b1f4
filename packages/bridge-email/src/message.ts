import { createHash } from 'node:crypto'
import PostalMime, { type Address, type Email } from 'postal-mime'
import type { Attachment, InboundEvent } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import { domainOf, isAddress, messageIds } from './addresses.js'
import { isAuthenticated } from './authentication.js'
import { automaticBecause } from './automatic.js'
import { type Bounce, bouncesOf } from './bounce.js'
import type { EmailConfig } from './config.js'
import { textOfHtml, withoutQuotes } from './text.js'

/** Decoded bytes of all files of a message. */
const MOST_ATTACHED = 8 * 1024 * 1024
const MOST_FILES = 20

/** A message as received from the server. */
export interface Raw {
  readonly source: Buffer
  /** Size on the server; larger than the source if the source was cut. */
  readonly size: number
  readonly receivedAt?: number
}

/** The result of reading a message. `unusable`: nothing to hand on, with the reason. */
export type Reading =
  | { readonly kind: 'event'; readonly event: InboundEvent; readonly thread: string; readonly subject: string }
  /** A delivery report about sent mail. */
  | { readonly kind: 'report'; readonly bounces: readonly Bounce[] }
  | { readonly kind: 'unusable'; readonly reason: string }

/** Reads one message of the mailbox. */
export async function read(raw: Raw, config: EmailConfig): Promise<Reading> {
  const email = await PostalMime.parse(raw.source, {
    attachmentEncoding: 'arraybuffer',
    maxNestingDepth: 50,
    maxHeadersSize: 256 * 1024,
    forceRfc822Attachments: true,
  }).catch(error => error as Error)
  if (email instanceof Error) return { kind: 'unusable', reason: `the message does not parse: ${email.message}` }
  const bounces = bouncesOf(email, config.address)
  if (bounces) return { kind: 'report', bounces }
  const from = email.from?.address ?? ''
  if (!isAddress(from)) return { kind: 'unusable', reason: 'the message has no sender with one address' }
  if (config.own.has(from.toLowerCase())) return { kind: 'unusable', reason: 'the bot itself sent the message' }

  const [messageId] = messageIds(email.messageId)
  const [inReplyTo] = messageIds(email.inReplyTo).reverse()
  const key = keyOf(email, messageId, from)
  const thread = messageIds(email.references)[0] ?? inReplyTo ?? messageId ?? key
  const subject = oneLine(email.subject ?? '')
  const { attachments, refused } = attachmentsOf(email)
  const body = withoutQuotes(bodyOf(email))
  const cut = raw.size > raw.source.length ? [`[the message of ${raw.size} bytes was cut]`] : []
  // In replies the subject adds nothing.
  const text = [inReplyTo === undefined ? subject : '', body, ...refused, ...cut]
    .filter(part => part !== '')
    .join('\n\n')
  const event: InboundEvent = {
    idempotency_key: key,
    family: 'message',
    sender: {
      id: from.toLowerCase(),
      username: from.toLowerCase(),
      display_name: oneLine(email.from?.name || from),
      authenticated: isAuthenticated(email, from, config.trustedAuthservId),
    },
    peer_id: from.toLowerCase(),
    thread_id: thread,
    ...(messageId === undefined ? {} : { message_id: messageId }),
    ...(inReplyTo === undefined ? {} : { reply_to_message_id: inReplyTo }),
    text,
    addressed: addresses([...(email.to ?? []), ...(email.cc ?? [])]).some(one => config.own.has(one.toLowerCase())),
    ...(automaticBecause(email, from) === undefined ? {} : { automatic: true }),
    ...(raw.receivedAt === undefined ? {} : { received_at: raw.receivedAt }),
    ...(attachments.length === 0 ? {} : { attachments }),
  }
  return { kind: 'event', event, thread, subject }
}

const oneLine = (text: string) => clip(text.replace(/[\p{Cc}\s]+/gu, ' ').trim(), 200)

const bodyOf = ({ text, html }: Email) => (text?.trim() ? text : textOfHtml(html ?? ''))

const addresses = (list: readonly Address[]): string[] =>
  list
    .slice(0, 200)
    .flatMap(one => (one.address === undefined ? one.group.map(({ address }) => address) : [one.address]))

/**
 * Identical for a repeated message, and distinct otherwise. The sender is part of the key, so that nobody can take another sender's
 * key.
 */
function keyOf(email: Email, messageId: string | undefined, from: string): string {
  const own = messageId ?? [email.date, email.subject, email.text, email.html].join('\n')
  return createHash('sha256')
    .update(`${domainOf(from)}\n${from.toLowerCase()}\n${own}`)
    .digest('hex')
    .slice(0, 40)
}

function attachmentsOf({ attachments }: Email): { attachments: Attachment[]; refused: string[] } {
  const taken: Attachment[] = []
  const refused: string[] = []
  let bytes = 0
  for (const { filename, mimeType, content } of attachments.slice(0, 1000)) {
    const data = Buffer.from(content as ArrayBuffer)
    const name = oneLine(filename ?? '').replace(/[/\\]/g, '_') || `file-${taken.length + 1}`
    if (taken.length >= MOST_FILES || bytes + data.length > MOST_ATTACHED) {
      if (refused.length < MOST_FILES) refused.push(`[attachment ${name} of ${data.length} bytes was left out]`)
      continue
    }
    bytes += data.length
    const type = /^[\w.+-]+\/[\w.+-]+$/.test(mimeType) ? mimeType : 'application/octet-stream'
    taken.push({ name, mime_type: type, data: data.toString('base64') })
  }
  return { attachments: taken, refused }
}
