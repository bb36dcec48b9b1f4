import { jid } from '@xmpp/client-core'
import { sayable } from './stanzas.js'

/** A JID without its resource. */
export const bareOf = (address: string): string => {
  const slash = address.indexOf('/')
  return (slash === -1 ? address : address.slice(0, slash)).toLowerCase()
}

/** Resource of a JID: in a room the nick. */
export const resourceOf = (address: string): string => {
  const slash = address.indexOf('/')
  return slash === -1 ? '' : address.slice(slash + 1)
}

/** An address to which a message may go. */
export function isAddress(address: string): boolean {
  if (sayable(address) !== address || address.length > 1024) return false
  try {
    return jid(address).domain !== '' && address.includes('@')
  } catch {
    return false
  }
}
