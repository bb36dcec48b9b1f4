import { clip } from '../../../../kernel/kit/text.js'
import type { Redact } from '../../../../kernel/plugin.js'
import type { SessionChange, SessionRow } from '../table.js'

const MAX_CHARACTERS = 80

/** Names an unnamed session of a person after the first line of a text; empty for any other session. */
export function titleOf({ name, type }: SessionRow, text: string, redact: Redact): SessionChange {
  if (name !== '' || type !== 'user') return {}
  const [line = ''] = redact.text(text).trim().split('\n')
  return line === '' ? {} : { name: clip(line, MAX_CHARACTERS) }
}
