import * as v from 'valibot'
import { shown } from '../../kernel/kit/text.js'
import { messageOf } from '../../kernel/plugin.js'
import type { HookEvent } from '../../schemas/hooks.js'
import { SessionType } from '../../schemas/sessions/session.js'
import type { HookPayload } from './api.js'
import { hookEvents, type PatchMember } from './hook-events.js'

/** What came of an answer: `rejected` is one that changes what it may not. */
export type Judged =
  | { readonly outcome: 'applied'; readonly payload: HookPayload; readonly patch?: HookPayload }
  | { readonly outcome: 'denied'; readonly reason: string; readonly patch: HookPayload }
  | { readonly outcome: 'rejected'; readonly error: string; readonly patch: HookPayload }

const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0')
const isTexts = (value: unknown) => Array.isArray(value) && value.length <= 1000 && value.every(isText)
const isObject = (value: unknown): value is HookPayload =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isRefusal = (value: unknown) => typeof value === 'boolean' || isText(value)

/** What each member has to be. */
const FORMS: Readonly<Record<PatchMember, (value: unknown, before: unknown) => boolean>> = {
  deny: isRefusal,
  cancel: isRefusal,
  session_name: isText,
  session_type: value => v.is(SessionType, value),
  agent_name: isText,
  message: isText,
  // Of an agent the texts that it is given, of a job or trigger the one that it sends.
  prompt: (value, before) => (Array.isArray(before) ? isTexts(value) : isText(value)),
  command: isText,
  args: isTexts,
  cwd: isText,
  input: isObject,
  decision: value => value === 'allow' || value === 'deny',
  permissions: isObject,
  capabilities: isTexts,
  priority_min: Number.isSafeInteger,
}

/** The answer of a program: JSON, or nothing. Throws for anything else. */
export function parsePatch(text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`what it printed is not JSON: ${messageOf(error)}`)
  }
}

/**
 * Judges what a hook answered and applies it. `reason` goes with a refusal. A refusal stands for good: what is refused already
 * cannot be allowed by an answer. Throws for an answer that is no object.
 */
export function judge(event: HookEvent, payload: HookPayload, answer: unknown): Judged {
  if (answer === undefined || answer === null) return { outcome: 'applied', payload }
  if (!isObject(answer)) throw new Error('an answer is a JSON object, or nothing')
  const { reason, ...patch } = answer
  const members = Object.keys(patch)
  if (members.length === 0) return { outcome: 'applied', payload }
  const { patch: allowed } = hookEvents[event]
  for (const member of members) {
    if (!(allowed as readonly string[]).includes(member)) {
      const may = allowed.length > 0 ? `it may change ${allowed.join(', ')}` : 'nothing can be changed then'
      return {
        outcome: 'rejected',
        error: `${event} has no ${shown(member, 64)} to change; ${may}`,
        patch: answer,
      }
    }
    if (!FORMS[member as PatchMember](patch[member], payload[member]))
      return { outcome: 'rejected', error: `${member}: not of the form that it has to have`, patch: answer }
  }
  const { deny, cancel, ...changes } = patch
  const refusals = [deny, cancel].filter(given => given !== undefined && given !== false)
  if (refusals.length > 0 || patch.decision === 'deny') {
    const said = [...refusals, reason].find(given => typeof given === 'string' && given !== '')
    const words = typeof said === 'string' ? said : ''
    return { outcome: 'denied', reason: words.slice(0, 1000) || 'a hook refused it', patch: answer }
  }
  if (patch.decision === 'allow' && payload.decision !== 'allow')
    return { outcome: 'rejected', error: 'an answer cannot allow what nobody else has allowed', patch: answer }
  return { outcome: 'applied', payload: { ...payload, ...changes }, patch: answer }
}
