import type { Email } from 'postal-mime'
import { clip } from '../../bridge-kit/src/index.js'
import { isMessageId, messageIds, ownId } from './addresses.js'

/** A sent mail that was not delivered. */
export interface Bounce {
  /** Message-ID of the sent mail. */
  readonly id: string
  readonly reason: string
}

/** Bytes read of each part of a report. */
const MOST_BYTES = 64 * 1024
const MOST_FIELDS = 200
const LONGEST_REASON = 400

/**
 * The failed mails of the address in a delivery report (RFC 3464); empty if the report is about a delay or another sender's mail.
 * Undefined: not a delivery report. A report is never treated as a prompt.
 */
export function bouncesOf(email: Email, address: string): readonly Bounce[] | undefined {
  const type = email.headers.find(({ key }) => key === 'content-type')?.value ?? ''
  if (!/^multipart\/report\b/i.test(type.trim()) || !/report-type\s*=\s*"?delivery-status\b/i.test(type))
    return undefined
  const text = (mime: RegExp): string => {
    const part = email.attachments.find(({ mimeType }) => mime.test(mimeType))
    return part
      ? Buffer.from(part.content as ArrayBuffer)
          .subarray(0, MOST_BYTES)
          .toString('utf8')
      : ''
  }
  const [, ...recipients] = blocksOf(text(/^message\/(?:global-)?delivery-status$/i))
  const failed = recipients.filter(fields => /^failed\b/i.test(fields.get('action') ?? ''))
  if (failed.length === 0) return []
  const [returned] = blocksOf(text(/^(?:message\/(?:global|rfc822)|(?:text|message)\/(?:rfc822|global)-headers)$/i))
  // Some servers omit the returned message; the report then replies to it.
  const named = [returned?.get('message-id'), email.inReplyTo, email.references].flatMap(messageIds)
  const id = named.find(one => isMessageId(one) && ownId(one, address))
  return id === undefined
    ? []
    : [
        {
          id,
          reason: clip(failed.map(fields => reasonOf(fields, email.text ?? '')).join('; '), LONGEST_REASON),
        },
      ]
}

/**
 * The header fields of each block of a text; blank lines separate blocks. The first occurrence of a field counts; folded lines are
 * joined.
 */
function blocksOf(text: string): ReadonlyMap<string, string>[] {
  return text.split(/\r?\n[ \t]*\r?\n/).flatMap(block => {
    const fields = new Map<string, string>()
    const lines = block.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
    for (const line of lines.slice(0, MOST_FIELDS)) {
      const [, name = '', value = ''] = /^([\w-]{1,70})[ \t]*:[ \t]*(.*)$/.exec(line) ?? []
      if (name !== '' && !fields.has(name.toLowerCase())) fields.set(name.toLowerCase(), value.trim())
    }
    return fields.size === 0 ? [] : [fields]
  })
}

/** @param words The readable part of the report, for reports whose fields lack the server's reply */
function reasonOf(fields: ReadonlyMap<string, string>, words: string): string {
  // `rfc822; ann@example.test`, `smtp; 550 no such user`
  const value = (name: string) => (fields.get(name) ?? '').replace(/^[\w.-]+\s*;\s*/, '')
  const who = value('final-recipient') || value('original-recipient')
  const [said = ''] = /\b5\d\d[ -](?:5\.\d{1,3}\.\d{1,3} )?[^\r\n]{1,200}/.exec(clip(words, MOST_BYTES)) ?? []
  const why = [value('status'), value('diagnostic-code') || said.trim()].filter(part => part !== '').join(' ')
  return [who, why || 'not delivered'].filter(part => part !== '').join(': ')
}
