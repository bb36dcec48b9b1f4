import { createHash } from 'node:crypto'
import type { InboundEvent } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import type { Conversation } from './conversations.js'
import { type FileOf, filesOf } from './files.js'
import { heard } from './text.js'

interface Account {
  readonly id?: unknown
  readonly name?: unknown
  readonly aadObjectId?: unknown
  readonly role?: unknown
}

/** The used members of a Bot Framework activity, unchecked. */
export interface Activity {
  readonly type?: unknown
  readonly id?: unknown
  readonly channelId?: unknown
  readonly serviceUrl?: unknown
  readonly timestamp?: unknown
  readonly from?: Account
  readonly recipient?: Account
  readonly conversation?: {
    readonly id?: unknown
    readonly name?: unknown
    readonly conversationType?: unknown
    readonly isGroup?: unknown
    readonly tenantId?: unknown
  }
  readonly channelData?: {
    readonly tenant?: { readonly id?: unknown }
    readonly channel?: { readonly name?: unknown }
    readonly team?: { readonly name?: unknown }
  }
  readonly text?: unknown
  readonly entities?: unknown
  readonly attachments?: unknown
  readonly replyToId?: unknown
  readonly reactionsAdded?: unknown
}

/** The parsed activity: its place, and either an event for the daemon or why there is none. */
export type Reading =
  | { readonly location: Conversation | undefined; readonly event: InboundEvent; readonly files: readonly FileOf[] }
  | { readonly location: Conversation | undefined; readonly ignored: string }

/** A Bot Framework id; it must be encoded in URLs. */
const ID = /^[\x21-\x7e]{1,400}$/
const LONGEST_KEY = 400

/** Whether an activity names a tenant, and no tenant but this one. */
export function isOfTenant({ conversation, channelData }: Activity, tenant: string): boolean {
  const named = [conversation?.tenantId, channelData?.tenant?.id].filter(id => id !== undefined && id !== null)
  return named.length > 0 && named.every(id => typeof id === 'string' && id.toLowerCase() === tenant)
}

/**
 * Reads an activity whose sender was verified.
 * @param service URL of its Bot Connector
 */
export function readActivity(activity: Activity, appId: string, service: string): Reading {
  const { type, conversation, from } = activity
  const bot = `28:${appId}`
  if (!isId(conversation?.id)) return { location: undefined, ignored: 'it names no conversation' }
  const [id = '', thread] = conversation.id.split(';messageid=')
  const kind = kindOf(conversation, thread)
  const sender = isId(from?.id) && from.id.toLowerCase() !== bot ? senderOf(from) : undefined
  const location = conversationOf(activity, id, kind, service, sender)
  if (!sender) return { location, ignored: 'the bot itself did it' }
  const where = {
    peer_id: sender.id,
    ...(kind === 'personal' ? {} : { group_id: id }),
    ...(thread !== undefined && ID.test(thread) ? { thread_id: thread } : {}),
  }
  const common = { ...where, sender, ...timeOf(activity.timestamp) }
  const key = (...parts: readonly unknown[]) => keyOf([conversation.id, ...parts])
  if (type === 'messageReaction') return { location, ...reaction(activity, common, key) }
  if (type !== 'message' && type !== 'messageUpdate') return { location, ignored: clip(String(type), 64) }
  if (!isId(activity.id)) return { location, ignored: 'it has no id' }
  const said = heard(typeof activity.text === 'string' ? activity.text : '', activity.entities, bot)
  const { text } = said
  const isEdit = type === 'messageUpdate'
  const files = isEdit ? [] : filesOf(activity.attachments, service)
  if (text === '' && files.length === 0) return { location, ignored: 'it has no text' }
  return {
    location,
    files,
    event: {
      ...common,
      idempotency_key: isEdit ? key(activity.id, 'edit', activity.timestamp ?? text) : key(activity.id),
      family: isEdit ? 'edit' : 'message',
      message_id: activity.id,
      ...(isId(activity.replyToId) ? { reply_to_message_id: activity.replyToId } : {}),
      text,
      addressed: kind === 'personal' || said.named,
    },
  }
}

type Common = Pick<InboundEvent, 'peer_id' | 'group_id' | 'thread_id' | 'sender' | 'received_at'>

function reaction(
  { id, replyToId, reactionsAdded }: Activity,
  common: Common,
  key: (...parts: readonly unknown[]) => string,
): { readonly event: InboundEvent; readonly files: readonly FileOf[] } | { readonly ignored: string } {
  const [added] = Array.isArray(reactionsAdded) ? (reactionsAdded as readonly ({ type?: unknown } | null)[]) : []
  const name = added?.type
  if (typeof name !== 'string' || !ID.test(name) || !isId(replyToId) || !isId(id))
    return { ignored: 'no reaction was added' }
  const event: InboundEvent = {
    ...common,
    idempotency_key: key(id, 'reaction', replyToId, common.sender.id, name),
    family: 'reaction',
    message_id: replyToId,
    action_id: name,
    text: `:${name}:`,
    // A bot receives only reactions to its own messages.
    addressed: true,
  }
  return { event, files: [] }
}

function kindOf(conversation: NonNullable<Activity['conversation']>, thread: string | undefined): Conversation['kind'] {
  const { conversationType: type, isGroup } = conversation
  if (type === 'personal' || type === 'groupChat' || type === 'channel') return type
  return thread !== undefined ? 'channel' : isGroup === true ? 'groupChat' : 'personal'
}

function conversationOf(
  { conversation, channelData }: Activity,
  id: string,
  kind: Conversation['kind'],
  service: string,
  sender: InboundEvent['sender'] | undefined,
): Conversation | undefined {
  if (kind === 'personal') {
    if (!sender) return undefined
    const name = sender.display_name === undefined ? {} : { name: sender.display_name }
    return { kind, conversation: id, service, peer_id: sender.id, ...name }
  }
  const names = [channelData?.team?.name, channelData?.channel?.name].filter(isName)
  const name = names.length > 0 ? names.join(' > ') : conversation?.name
  return { kind, conversation: id, service, group_id: id, ...(isName(name) ? { name: clip(name, 200) } : {}) }
}

/** Names are chosen freely and may be shared: only the id identifies a person. */
function senderOf({ id, name, aadObjectId, role }: Account): InboundEvent['sender'] {
  const account = isId(aadObjectId) ? aadObjectId.toLowerCase() : undefined
  return {
    id: account ?? String(id),
    ...(isName(name) ? { display_name: clip(name, 200) } : {}),
    // Meeting guests have no account.
    authenticated: account !== undefined,
    ...(role === 'bot' || String(id).startsWith('28:') ? { is_bot: true } : {}),
  }
}

const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)
const isName = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

function keyOf(parts: readonly unknown[]): string {
  const key = parts.map(String).join('|')
  return key.length <= LONGEST_KEY ? key : createHash('sha256').update(key).digest('hex')
}

function timeOf(timestamp: unknown): { readonly received_at?: number } {
  const at = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  return Number.isFinite(at) && at >= 0 ? { received_at: at } : {}
}
