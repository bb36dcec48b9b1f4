import { jid } from '@xmpp/client-core'
import { sayable } from './stanzas.js'

/** The bare JID, without the resource. */
export const bareOf = (address: string): string => {
  const slash = address.indexOf('/')
  return (slash === -1 ? address : address.slice(0, slash)).toLowerCase()
}

/** The resource of a JID, which in a room is the nick. */
export const resourceOf = (address: string): string => {
  const slash = address.indexOf('/')
  return slash === -1 ? '' : address.slice(slash + 1)
}

/** Whether an address is a valid recipient. */
export function isAddress(address: string): boolean {
  if (sayable(address) !== address || address.length > 1024) return false
  try {
    return jid(address).domain !== '' && address.includes('@')
  } catch {
    return false
  }
}
