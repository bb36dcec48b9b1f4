import { type Address, clip, NotSent } from '../../bridge-kit/src/index.js'

/** The conversation below an issue or pull request, or the thread of a review comment. */
export type Place =
  | { readonly kind: 'issue'; readonly repository: string; readonly number: number }
  | { readonly kind: 'review'; readonly repository: string; readonly number: number; readonly root: number }

export const REPOSITORY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}\/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$/

/** A place as the address of a message. */
export function addressOf(place: Place): Required<Pick<Address, 'group_id' | 'thread_id'>> {
  const thread = place.kind === 'issue' ? String(place.number) : `${place.number}/${place.root}`
  return { group_id: place.repository, thread_id: thread }
}

/**
 * The place of an address.
 * @throws NotSent If the address is invalid: only checked values become part of a URL
 */
export function placeOf({ group_id: repository = '', thread_id: thread = '' }: Address): Place {
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
export function commentsPath({ kind, repository, number }: Place): string {
  return `/repos/${repository}/${kind === 'issue' ? 'issues' : 'pulls'}/${number}/comments`
}

/** API path that creates a comment. */
export function creationPath(place: Place): string {
  return place.kind === 'issue' ? commentsPath(place) : `${commentsPath(place)}/${place.root}/replies`
}

/**
 * API path of one comment.
 * @throws NotSent If the id is invalid
 */
export function commentPath({ kind, repository }: Place, id: string): string {
  if (!/^\d{1,15}$/.test(id)) throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 40))} is no comment`)
  return `/repos/${repository}/${kind === 'issue' ? 'issues' : 'pulls'}/comments/${id}`
}
