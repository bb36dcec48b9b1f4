import { createHash } from 'node:crypto'
import { type Address, clip, NotSent } from '../../bridge-kit/src/index.js'

/** Where a message is shown: a space, which a direct message is as well, and its thread. */
export interface Place {
  readonly space: string
  readonly thread?: string
  /** Only spaces with a name have threads. */
  readonly isDirect: boolean
}

const ID = '[A-Za-z0-9_-]{1,128}'
const SPACE = new RegExp(`^spaces/${ID}$`)
const USER = /^users\/[A-Za-z0-9_.@+-]{1,128}$/
const THREAD = new RegExp(`^${ID}$`)
const MESSAGE = new RegExp(`^(spaces/${ID})/messages/[A-Za-z0-9_.-]{1,256}$`)

export const isSpace = (value: unknown): value is string => typeof value === 'string' && SPACE.test(value)
export const isUser = (value: unknown): value is string => typeof value === 'string' && USER.test(value)
export const isMessage = (value: unknown): value is string => typeof value === 'string' && MESSAGE.test(value)

/** The id of a thread of a space, from its name. */
export function threadOf(space: string, name: unknown): string | undefined {
  const prefix = `${space}/threads/`
  if (typeof name !== 'string' || !name.startsWith(prefix)) return undefined
  const id = name.slice(prefix.length)
  return THREAD.test(id) ? id : undefined
}

/**
 * The place of an address; a person stands for the direct message with them, which `find` looks up.
 * @throws NotSent it is none: nothing of an address becomes part of a URL unchecked
 */
export async function placeOf(address: Address, find: (user: string) => Promise<string>): Promise<Place> {
  const { group_id: group, peer_id: peer = '', thread_id: thread } = address
  const given = group ?? peer
  if (isUser(given) && group === undefined) return { space: await find(given), isDirect: true }
  if (!isSpace(given) || (thread !== undefined && !THREAD.test(thread)))
    throw new NotSent(
      'unknown_destination',
      `${JSON.stringify(clip([given, thread].filter(Boolean).join('#'), 120))} is no space of Google Chat`,
    )
  return { space: given, isDirect: group === undefined, ...(thread === undefined ? {} : { thread }) }
}

/** The name of a message that is to be changed. @throws NotSent it is none of the space */
export function messageIn(space: string, name: string): string {
  const [, of] = MESSAGE.exec(name) ?? []
  if (of !== space)
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(name, 120))} is no message of the space`)
  return name
}

/** The id that a message is given when it is made: the same at each attempt, so that it is made once. */
export const clientId = (nonce: string): string => `client-${digest(nonce)}`

/** A key by which the parts of one notification share a thread. */
export const threadKey = (deliveryId: string): string => `svc-${digest(deliveryId)}`

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 40)
