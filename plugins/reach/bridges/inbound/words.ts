import type { InboundEvent } from '../api.js'

/** A person's command to the bridge itself instead of the agent. */
export type Word =
  | { readonly says: 'cancel' }
  | { readonly says: 'new' }
  | { readonly says: 'allow' | 'deny'; readonly code: string }
  | { readonly says: 'reply'; readonly code: string; readonly text: string }

/** Letters of question codes, without those that are easily confused. */
export const CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ23456789'
export const CODE_LENGTH = 5
const CODE = `[${CODE_LETTERS}]{${CODE_LENGTH}}`
/** Optional mention of the bot before a command. */
const BEFORE = '^(?:<?@?[^\\s]{1,100}[:,>]\\s*|@[^\\s]{1,100}\\s+)?'
const COMMAND = new RegExp(`${BEFORE}[/!](cancel|new)$`, 'i')
const DECISION = new RegExp(`${BEFORE}[/!]?(allow|deny)\\s+(${CODE})$`, 'i')
const REPLY = new RegExp(`${BEFORE}[/!]?reply\\s+(${CODE})\\s+(\\S[\\s\\S]*)$`, 'i')
const ACTION = new RegExp(`^(allow|deny):(${CODE})$`)

/** The command in an event; undefined: the event is for the agent. */
export function wordOf({ family, text = '', action_id }: InboundEvent): Word | undefined {
  if (family === 'action') {
    const [, says, code] = ACTION.exec(action_id ?? '') ?? []
    return says && code ? { says: says as 'allow', code } : undefined
  }
  const trimmed = text.trim()
  const [, command] = COMMAND.exec(family === 'command' && /^\w/.test(trimmed) ? `/${trimmed}` : trimmed) ?? []
  if (command) return { says: command.toLowerCase() as 'cancel' }
  const [, decision, code] = DECISION.exec(trimmed) ?? []
  if (decision && code) return { says: decision.toLowerCase() as 'allow', code: code.toUpperCase() }
  const [, of, reply] = REPLY.exec(trimmed) ?? []
  return of && reply ? { says: 'reply', code: of.toUpperCase(), text: reply } : undefined
}
