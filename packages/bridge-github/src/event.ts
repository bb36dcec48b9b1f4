import type { InboundEvent } from '../../bridge-kit/src/index.js'
import { mentions, withoutMention } from './text.js'
import { addressOf, REPOSITORY, type Thread } from './threads.js'

/** The identity of the bot. */
export interface Self {
  /** The login as comment author: `name`, or `name[bot]` for an app. */
  readonly login: string
  /** The name in mentions. */
  readonly mention: string
}

interface User {
  readonly login?: unknown
  readonly id?: unknown
  readonly type?: unknown
}
interface Written {
  readonly id?: unknown
  readonly body?: unknown
  readonly user?: User
  readonly created_at?: unknown
  readonly in_reply_to_id?: unknown
}
interface Payload {
  readonly action?: unknown
  readonly comment?: Written
  readonly issue?: Written & { readonly number?: unknown; readonly title?: unknown }
  readonly pull_request?: { readonly number?: unknown }
  readonly repository?: { readonly full_name?: unknown }
}

/** The content of a webhook. `ignored`: valid but not for the daemon, with the reason. */
export type Reading = { readonly event: InboundEvent } | { readonly ignored: string }

/** Reads an event of the kinds `issue_comment`, `issues` and `pull_request_review_comment`. */
export function readEvent(
  kind: string,
  guid: string,
  payload: unknown,
  self: Self,
  repositories: ReadonlySet<string> | undefined,
): Reading {
  const { action, comment, issue, pull_request: pull, repository } = (payload ?? {}) as Payload
  const name = repository?.full_name
  if (typeof name !== 'string' || !REPOSITORY.test(name)) return { ignored: 'it names no repository' }
  if (repositories && !repositories.has(name.toLowerCase())) return { ignored: `${name} is not among the repositories` }
  const written = kind === 'issues' ? issue : comment
  const family =
    action === 'edited' ? 'edit' : action === (kind === 'issues' ? 'opened' : 'created') ? 'message' : undefined
  if (family === undefined || !written) return { ignored: `${kind} ${String(action)}` }
  const { id, user, body, created_at: created, in_reply_to_id: root } = written
  const number = kind === 'pull_request_review_comment' ? pull?.number : issue?.number
  if (!isId(id) || !isId(number) || !isId(user?.id) || typeof user?.login !== 'string')
    return { ignored: 'it lacks an id' }
  // GitHub also reports the bot's own comments.
  if (user.login.toLowerCase() === self.login.toLowerCase()) return { ignored: 'the bot itself wrote it' }
  const location: Thread =
    kind === 'pull_request_review_comment'
      ? { kind: 'review', repository: name, number, root: isId(root) ? root : id }
      : { kind: 'issue', repository: name, number }
  const said = typeof body === 'string' ? body : ''
  const title = kind === 'issues' && typeof issue?.title === 'string' ? issue.title : ''
  const text = [withoutMention(title, self.mention), withoutMention(said, self.mention)]
    .filter(part => part !== '')
    .join('\n\n')
  const at = typeof created === 'string' ? Date.parse(created) : Number.NaN
  return {
    event: {
      idempotency_key: guid,
      family,
      sender: {
        id: String(user.id),
        username: user.login,
        display_name: user.login,
        // Verified by GitHub's signature.
        authenticated: true,
        ...(user.type === 'Bot' ? { is_bot: true } : {}),
      },
      peer_id: user.login,
      ...addressOf(location),
      ...(kind === 'issues' ? {} : { message_id: String(id) }),
      ...(isId(root) ? { reply_to_message_id: String(root) } : {}),
      text,
      addressed: mentions(`${title}\n\n${said}`, self.mention),
      ...(Number.isFinite(at) ? { received_at: at } : {}),
    },
  }
}

const isId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0
