import { createHash } from 'node:crypto'
import { type Address, clip, NotSent } from '../../bridge-kit/src/index.js'

/** A space, which may be a direct message, and a thread in it. */
export interface SpaceLocation {
  readonly space: string
  readonly thread?: string
  /** Direct messages have no threads. */
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

/** The thread id in the resource name of a thread. */
export function threadOf(space: string, name: unknown): string | undefined {
  const prefix = `${space}/threads/`
  if (typeof name !== 'string' || !name.startsWith(prefix)) return undefined
  const id = name.slice(prefix.length)
  return THREAD.test(id) ? id : undefined
}

/**
 * The place of an address; `find` looks up the direct message with a person.
 * @throws NotSent If the address is invalid: only checked values become part of a URL
 */
export async function locationOf(address: Address, find: (user: string) => Promise<string>): Promise<SpaceLocation> {
  const { group_id: group, peer_id: peer = '', thread_id: thread } = address
  const target = group ?? peer
  if (isUser(target) && group === undefined) return { space: await find(target), isDirect: true }
  if (!isSpace(target) || (thread !== undefined && !THREAD.test(thread)))
    throw new NotSent(
      'unknown_destination',
      `${JSON.stringify(clip([target, thread].filter(Boolean).join('#'), 120))} is no space of Google Chat`,
    )
  return { space: target, isDirect: group === undefined, ...(thread === undefined ? {} : { thread }) }
}

/**
 * The name of a message to change.
 * @throws NotSent If it is not in the space
 */
export function messageIn(space: string, name: string): string {
  const [, of] = MESSAGE.exec(name) ?? []
  if (of !== space)
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(name, 120))} is no message of the space`)
  return name
}

/** The client-assigned message id: identical in each attempt, so that the message is created only once. */
export const clientId = (nonce: string): string => `client-${digest(nonce)}`

/** The thread key that the parts of one notification share. */
export const threadKey = (deliveryId: string): string => `svc-${digest(deliveryId)}`

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 40)
