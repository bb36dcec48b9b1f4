import * as v from 'valibot'
import { shown } from '../../kernel/kit/text.js'
import { messageOf } from '../../kernel/plugin.js'
import type { HookEvent } from '../../schemas/hooks.js'
import { SessionType } from '../../schemas/sessions/session.js'
import type { HookPayload } from './api.js'
import { hookEvents, type PatchMember } from './hook-events.js'

/** The result of applying an answer. `rejected`: the patch sets a field that the event does not allow. */
export type Judged =
  | { readonly outcome: 'applied'; readonly payload: HookPayload; readonly patch?: HookPayload }
  | { readonly outcome: 'denied'; readonly reason: string; readonly patch: HookPayload }
  | { readonly outcome: 'rejected'; readonly error: string; readonly patch: HookPayload }

const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0')
const isTexts = (value: unknown) => Array.isArray(value) && value.length <= 1000 && value.every(isText)
const isObject = (value: unknown): value is HookPayload =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isRefusal = (value: unknown) => typeof value === 'boolean' || isText(value)

/** Type check per patch field. */
const FORMS: Readonly<Record<PatchMember, (value: unknown, before: unknown) => boolean>> = {
  deny: isRefusal,
  cancel: isRefusal,
  session_name: isText,
  session_type: value => v.is(SessionType, value),
  agent_name: isText,
  message: isText,
  // prompt.post_assemble has a list of texts, the pre_fire events have one text.
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

/** Parses the output of a program: JSON or empty. Throws otherwise. */
export function parsePatch(text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`invalid JSON on standard output: ${messageOf(error)}`)
  }
}

/**
 * Validates a patch and applies it. `reason` explains a denial. A hook cannot turn a denial into an approval. Throws when
 * the answer is not an object.
 */
export function judge(event: HookEvent, payload: HookPayload, answer: unknown): Judged {
  if (answer === undefined || answer === null) return { outcome: 'applied', payload }
  if (!isObject(answer)) throw new Error('the patch must be a JSON object')
  const { reason, ...patch } = answer
  const members = Object.keys(patch)
  if (members.length === 0) return { outcome: 'applied', payload }
  const { patch: allowed } = hookEvents[event]
  for (const member of members) {
    if (!(allowed as readonly string[]).includes(member)) {
      const may = allowed.length > 0 ? `allowed: ${allowed.join(', ')}` : 'the event is observation-only'
      return {
        outcome: 'rejected',
        error: `a patch of ${event} cannot set ${shown(member, 64)}; ${may}`,
        patch: answer,
      }
    }
    if (!FORMS[member as PatchMember](patch[member], payload[member]))
      return { outcome: 'rejected', error: `${member}: invalid value in the patch`, patch: answer }
  }
  const { deny, cancel, ...changes } = patch
  const refusals = [deny, cancel].filter(given => given !== undefined && given !== false)
  if (refusals.length > 0 || patch.decision === 'deny') {
    const said = [...refusals, reason].find(given => typeof given === 'string' && given !== '')
    const words = typeof said === 'string' ? said : ''
    return { outcome: 'denied', reason: words.slice(0, 1000) || 'denied by a hook', patch: answer }
  }
  if (patch.decision === 'allow' && payload.decision !== 'allow')
    return { outcome: 'rejected', error: 'a hook cannot change a decision from deny to allow', patch: answer }
  return { outcome: 'applied', payload: { ...payload, ...changes }, patch: answer }
}
