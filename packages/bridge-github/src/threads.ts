import { type Address, clip, NotSent } from '../../bridge-kit/src/index.js'

/** The conversation below an issue or pull request, or the thread of a review comment. */
export type Thread =
  | { readonly kind: 'issue'; readonly repository: string; readonly number: number }
  | { readonly kind: 'review'; readonly repository: string; readonly number: number; readonly root: number }

export const REPOSITORY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}\/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$/

/** A place as the address of a message. */
export function addressOf(location: Thread): Required<Pick<Address, 'group_id' | 'thread_id'>> {
  const thread = location.kind === 'issue' ? String(location.number) : `${location.number}/${location.root}`
  return { group_id: location.repository, thread_id: thread }
}

/**
 * The place of an address.
 * @throws NotSent If the address is invalid: only checked values become part of a URL
 */
export function locationOf({ group_id: repository = '', thread_id: thread = '' }: Address): Thread {
  const [, number, root] = /^(\d{1,10})(?:\/(\d{1,15}))?$/.exec(thread) ?? []
  if (!REPOSITORY.test(repository) || number === undefined)
    throw new NotSent(
      'unknown_destination',
      `${JSON.stringify(clip(`${repository}#${thread}`, 120))} is no issue or pull request`,
    )
  const at = { repository, number: Number(number) }
  return root === undefined ? { kind: 'issue', ...at } : { kind: 'review', ...at, root: Number(root) }
}

/** API path that lists the comments of a place. */
export function commentsPath({ kind, repository, number }: Thread): string {
  return `/repos/${repository}/${kind === 'issue' ? 'issues' : 'pulls'}/${number}/comments`
}

/** API path that creates a comment. */
export function creationPath(location: Thread): string {
  return location.kind === 'issue' ? commentsPath(location) : `${commentsPath(location)}/${location.root}/replies`
}

/**
 * API path of one comment.
 * @throws NotSent If the id is invalid
 */
export function commentPath({ kind, repository }: Thread, id: string): string {
  if (!/^\d{1,15}$/.test(id))
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 40))} is not the id of a comment`)
  return `/repos/${repository}/${kind === 'issue' ? 'issues' : 'pulls'}/comments/${id}`
}
