import type { Attachment, InboundEvent } from '../../bridge-kit/src/index.js'

const LONGEST_TEXT = 1024 * 1024
const LONGEST_ID = 256
const MOST_FILES = 10
const MOST_ATTACHED = 5 * 1024 * 1024

/** An invalid event, with the reason. */
export class BadEvent extends Error {
  override readonly name = 'BadEvent'
}

/**
 * Parses the body of a request; the format is in the README of the package.
 * @throws BadEvent Names the first invalid member
 */
export function eventOf(body: Buffer, id: string, trustSenders: boolean): InboundEvent {
  const event = objectIn(parsed(body), 'the body')
  const sender = objectIn(event.sender, 'sender')
  const family = event.family ?? 'message'
  if (family !== 'message' && family !== 'edit' && family !== 'command' && family !== 'action' && family !== 'reaction')
    throw new BadEvent('family is not message, edit, command, action or reaction')
  const text = textIn(event.text, 'text', LONGEST_TEXT)
  const actionId = textIn(event.action_id, 'action_id', LONGEST_ID)
  if (text === undefined && actionId === undefined) throw new BadEvent('text is missing')
  const senderId = textIn(sender.id, 'sender.id', LONGEST_ID)
  if (!senderId) throw new BadEvent('sender.id is missing')
  const address = ids(event, ['peer_id', 'group_id', 'thread_id', 'message_id', 'reply_to_message_id'])
  return {
    idempotency_key: id,
    family,
    sender: {
      id: senderId,
      ...texts(sender, ['username', 'display_name']),
      authenticated: trustSenders && flagIn(sender.authenticated, 'sender.authenticated', false),
      ...(flagIn(sender.is_bot, 'sender.is_bot', false) ? { is_bot: true } : {}),
    },
    peer_id: senderId,
    ...address,
    ...(text === undefined ? {} : { text }),
    ...(actionId === undefined ? {} : { action_id: actionId }),
    addressed: flagIn(event.addressed, 'addressed', true),
    ...(flagIn(event.automatic, 'automatic', false) ? { automatic: true } : {}),
    ...attachmentsOf(event.attachments),
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadEvent('the body is not valid JSON')
  }
}

function objectIn(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new BadEvent(`${name} is not an object`)
}

function textIn(value: unknown, name: string, most: number): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && value.length <= most) return value
  throw new BadEvent(`${name} is no text of at most ${most} characters`)
}

function flagIn(value: unknown, name: string, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value === 'boolean') return value
  throw new BadEvent(`${name} is neither true nor false`)
}

function texts<K extends string>(from: Record<string, unknown>, names: readonly K[]): { [N in K]?: string } {
  const found = names.map(name => [name, textIn(from[name], name, LONGEST_ID)] as const)
  return Object.fromEntries(found.filter(([, value]) => value !== undefined && value !== '')) as { [N in K]?: string }
}

const ids = texts

function attachmentsOf(value: unknown): { attachments?: Attachment[] } {
  if (value === undefined) return {}
  if (!Array.isArray(value) || value.length > MOST_FILES)
    throw new BadEvent(`attachments is not a list of at most ${MOST_FILES}`)
  let bytes = 0
  const attachments = value.map(one => {
    const { name, mime_type: type, data } = objectIn(one, 'an attachment')
    if (typeof name !== 'string' || name === '' || name.length > LONGEST_ID || /[/\\\p{Cc}]/u.test(name))
      throw new BadEvent('the name of an attachment is not a file name')
    if (typeof type !== 'string' || !/^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(type))
      throw new BadEvent('the mime_type of an attachment is not valid')
    if (typeof data !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(data))
      throw new BadEvent('the data of an attachment is not base64')
    bytes += Math.floor((data.length * 3) / 4)
    if (bytes > MOST_ATTACHED) throw new BadEvent(`the attachments have more than ${MOST_ATTACHED} bytes`)
    return { name, mime_type: type, data }
  })
  return attachments.length === 0 ? {} : { attachments }
}
