import { clip } from '../../bridge-kit/src/index.js'

/** Exactly one plain address: without lists, comments, quotes or line breaks, so it cannot become two in a header or envelope. */
const ADDRESS = /^[^\s@<>",;:()[\]\\\p{Cc}]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,188}[a-z0-9])?$/iu

export const isAddress = (text: string): boolean => ADDRESS.test(text) && !text.includes('..')

export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

const MESSAGE_ID = /^[^\s<>\p{Cc}]{1,240}$/u

/** The ids of a `Message-ID`, `In-Reply-To` or `References` header, without brackets; invalid ids are dropped. */
export function messageIds(header: string | undefined): string[] {
  const found = clip(header ?? '', 32_768).matchAll(/<([^<>]*)>/g)
  return [...found].map(([, id = '']) => id).filter(isMessageId)
}

export const isMessageId = (text: string): boolean => MESSAGE_ID.test(text) && text.includes('@')

/** Message-ID of the answer with a nonce, the same in every attempt. */
export const answerId = (nonce: string, address: string): string => `svc.${nonce}@${domainOf(address)}`

/** Whether a Message-ID is that of an answer sent by the address. */
export const ownId = (id: string, address: string): boolean =>
  id.startsWith('svc.') && domainOf(id) === domainOf(address)
