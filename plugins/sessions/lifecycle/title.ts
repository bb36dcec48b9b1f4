import type { SessionChange, SessionRow } from '../table.js'

const MAX_CHARACTERS = 80

/** The change that names an unnamed session of a person by the first line of a text; an empty one for any other. */
export function titleOf({ name, type }: SessionRow, text: string): SessionChange {
  if (name !== '' || type !== 'user') return {}
  const [line = ''] = text.trim().split('\n')
  return line === '' ? {} : { name: line.slice(0, MAX_CHARACTERS) }
}
