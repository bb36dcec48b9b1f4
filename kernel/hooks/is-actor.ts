import type { Actor, Party } from '../contract/record.js'

/** Whether a value can be believed to be an actor; for what comes from code that nobody type-checked. */
export function isActor(value: unknown): value is Actor {
  const { kind, id, owner, source } = Object(value) as Partial<Actor>
  const isParty = (party: Party | undefined) => typeof party?.kind === 'string' && typeof party.id === 'string'
  return (
    ['operator', 'daemon', 'extension'].includes(kind ?? '') &&
    typeof id === 'string' &&
    isParty(owner) &&
    isParty(source)
  )
}
