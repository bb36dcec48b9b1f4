import { cut } from '../../../../kernel/kit/text.js'
import type { MessageRow } from '../tables.js'
import { promptOf, RULES } from './prompt.js'

/** Maximum number of messages in a prompt, and of characters per message. */
export const MOST = 20
const MAX_TEXT = 32 * 1024

/** The prompt for collected messages, oldest first. Says how many were left out. */
export function promptOfAll(gathered: readonly MessageRow[]): string {
  const texts = gathered.slice(0, MOST).map(message => cut(promptOf(message), MAX_TEXT))
  const left = gathered.length - texts.length
  if (left > 0) texts.push(`${left} more messages came with these. Read them: svc network inbox`)
  return [...texts, RULES].join('\n\n---\n\n')
}
