import type { PromptBody } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'

/** The text of a prompt in any of its accepted forms; undefined when no member for it is present. */
export function textOf(body: PromptBody): string | undefined {
  const message = body.messages?.findLast(({ role }) => role === 'user')
  const parts = message?.parts
    ?.filter(({ type }) => type === undefined || type === 'text')
    .map(({ text }) => text ?? '')
  const text = body.text ?? body.message ?? message?.content ?? parts?.join('\n')
  if (text === undefined && body.messages === undefined) return undefined
  if (text === undefined || text.trim() === '') throw SessionErrors.prompt_text_missing()
  return text
}
