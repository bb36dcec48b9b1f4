import type { Email } from 'postal-mime'

/** Local parts of automatic senders. */
const MACHINES = /^(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?|listserv|majordomo)(?:[+.=-].*)?$/i

/** Headers that occur only in automatic or list messages. */
const TELLING = [
  'list-id',
  'list-post',
  'list-unsubscribe',
  'x-auto-response-suppress',
  'x-autoreply',
  'x-autorespond',
  'x-auto-reply',
  'x-failed-recipients',
  'x-loop',
  'feedback-id',
]

/**
 * Why a message counts as automatic (RFC 3834 and common responders); undefined: a person wrote it. Automatic messages get no
 * answer, otherwise two responders would answer each other forever.
 */
export function automaticBecause({ headers }: Email, from: string): string | undefined {
  const values = (key: string) => headers.filter(header => header.key === key).map(({ value }) => value.trim())
  const submitted = values('auto-submitted').find(value => !/^no\b/i.test(value))
  if (submitted !== undefined) return 'Auto-Submitted'
  const precedence = values('precedence').find(value => /^(?:bulk|list|junk|auto_reply)\b/i.test(value))
  if (precedence !== undefined) return 'Precedence'
  const telling = TELLING.find(key => values(key).length > 0)
  if (telling !== undefined) return telling
  // The null sender of bounces and of responders.
  if (values('return-path').some(value => value === '<>')) return 'Return-Path'
  if (values('content-type').some(value => /^multipart\/report\b/i.test(value))) return 'Content-Type'
  return MACHINES.test(from.slice(0, from.lastIndexOf('@'))) ? 'From' : undefined
}
