import type { InboundEvent } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import { isUuid } from './ids.js'

/** The identity of the bot. */
export interface Self {
  readonly id: string
  /** Names in mentions. */
  readonly names: readonly string[]
}

interface Payload {
  readonly action?: unknown
  readonly type?: unknown
  readonly data?: {
    readonly id?: unknown
    readonly body?: unknown
    readonly issueId?: unknown
    readonly parentId?: unknown
    readonly userId?: unknown
    readonly user?: { readonly name?: unknown; readonly email?: unknown } | null
    readonly createdAt?: unknown
    readonly updatedAt?: unknown
  }
}

/** The content of a webhook. `ignored`: valid but not for the daemon, with the reason. */
export type Reading = { readonly event: InboundEvent } | { readonly ignored: string }

/** Reads a comment. The key uses only signed fields: a request repeated under another id is the same event. */
export function readEvent(payload: unknown, self: Self): Reading {
  const { action, type, data } = (payload ?? {}) as Payload
  if (type !== 'Comment' || !data || (action !== 'create' && action !== 'update'))
    return { ignored: clip(`${String(type)} ${String(action)}`, 100) }
  const { id, body, issueId, parentId, userId, user, createdAt, updatedAt } = data
  if (!isUuid(id) || !isUuid(issueId) || typeof body !== 'string') return { ignored: 'it is no comment on an issue' }
  // Comments of integrations have no user.
  if (!isUuid(userId)) return { ignored: 'no user wrote it' }
  if (userId === self.id) return { ignored: 'the bot itself wrote it' }
  const at = Date.parse(String(createdAt))
  const named = self.names.find(name => mention(name).test(body))
  const name = typeof user?.name === 'string' ? clip(user.name, 200) : undefined
  return {
    event: {
      idempotency_key: action === 'create' ? `${id}:create` : `${id}:${clip(String(updatedAt), 40)}`,
      family: action === 'create' ? 'message' : 'edit',
      sender: {
        id: userId,
        // Names are chosen freely; email addresses are verified.
        ...(typeof user?.email === 'string' ? { username: clip(user.email, 200) } : {}),
        ...(name === undefined ? {} : { display_name: name }),
        // Verified by Linear's signature.
        authenticated: true,
      },
      peer_id: userId,
      group_id: issueId,
      thread_id: isUuid(parentId) ? parentId : id,
      message_id: id,
      ...(isUuid(parentId) ? { reply_to_message_id: parentId } : {}),
      text: named === undefined ? body : body.replace(leading(named), '').trim(),
      addressed: named !== undefined,
      ...(Number.isFinite(at) ? { received_at: at } : {}),
    },
  }
}

const escaped = (name: string) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
const mention = (name: string) => new RegExp(`(?:^|[^\\p{L}\\p{N}@/])@${escaped(name)}(?![\\p{L}\\p{N}_-])`, 'iu')
const leading = (name: string) =>
  new RegExp(`^\\s*\\[?@${escaped(name)}(?![\\p{L}\\p{N}_-])(?:\\]\\([^)\\s]*\\))?[\\s,:]*`, 'iu')
