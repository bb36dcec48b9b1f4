import { createHash } from 'node:crypto'
import { type Address, clip, NotSent } from '../../bridge-kit/src/index.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const IDENTIFIER = /^[A-Z][A-Z0-9]{0,9}-\d{1,9}$/

export const isUuid = (value: unknown): value is string => typeof value === 'string' && UUID.test(value)
export const isIdentifier = (value: unknown): value is string => typeof value === 'string' && IDENTIFIER.test(value)

/** Comment id of a nonce, as the UUID version 4 that Linear requires: every attempt creates the same comment. */
export function commentId(nonce: string): string {
  const bytes = createHash('sha256').update(`svc-comment:${nonce}`).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/**
 * Issue and thread of an address.
 * @throws NotSent If the address is invalid
 */
export function issueOf({ group_id: issueId, thread_id: parentId }: Address): { issueId: string; parentId?: string } {
  if ((!isUuid(issueId) && !isIdentifier(issueId)) || (parentId !== undefined && !isUuid(parentId)))
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(issueId ?? '', 80))} is not a Linear issue`)
  return { issueId, ...(parentId === undefined ? {} : { parentId }) }
}
