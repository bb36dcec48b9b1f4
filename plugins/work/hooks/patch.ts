import * as v from 'valibot'
import { clip, parseJson, shown } from '../../../kernel/kit/text.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import { ParticipationRequest } from '../../../schemas/network.js'
import { isWider } from '../../../schemas/network-bounds.js'
import { SessionType } from '../../../schemas/sessions/session.js'
import type { Fixed, HookPayload } from './api.js'
import { hookEvents, type PatchMember } from './hook-events.js'
import { isReading } from './record-payload.js'

/** The result of applying an answer. `rejected`: the patch sets a field that the event does not allow. */
export type Judged =
  | { readonly outcome: 'applied'; readonly payload: HookPayload; readonly patch?: HookPayload }
  | { readonly outcome: 'denied'; readonly reason: string; readonly patch: HookPayload }
  | { readonly outcome: 'rejected'; readonly error: string; readonly patch: HookPayload }

const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0')
const isTexts = (value: unknown) => Array.isArray(value) && value.length <= 1000 && value.every(isText)
const isObject = (value: unknown): value is HookPayload =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The form of a patch field: a check, and its description for an error. */
interface Form {
  readonly is: (value: unknown, before: unknown) => boolean
  readonly words: string
}
const TEXT: Form = { is: isText, words: 'a string' }
const TEXTS: Form = { is: isTexts, words: 'a list of at most 1000 strings' }
const OBJECT: Form = { is: isObject, words: 'an object' }
const REFUSAL: Form = { is: value => typeof value === 'boolean' || isText(value), words: 'true, false or the reason' }

const FORMS: Readonly<Record<PatchMember, Form>> = {
  deny: REFUSAL,
  cancel: REFUSAL,
  session_name: TEXT,
  session_type: { is: value => v.is(SessionType, value), words: SessionType.options.join(', ') },
  agent_name: TEXT,
  workspace_id: TEXT,
  workspace: TEXT,
  message: TEXT,
  prompt: {
    is: (value, before) => (Array.isArray(before) ? isTexts(value) : isText(value)),
    words: 'a list of strings in prompt.post_assemble, else a string',
  },
  context_blocks: TEXTS,
  command: TEXT,
  args: TEXTS,
  cwd: TEXT,
  name: TEXT,
  namespace: TEXT,
  read_only: { is: value => typeof value === 'boolean', words: 'true or false' },
  input: OBJECT,
  title: TEXT,
  result: { is: value => isText(value) || isObject(value), words: 'a string or an object' },
  error: TEXT,
  class: TEXT,
  decision: { is: value => value === 'allow' || value === 'deny', words: '"allow" or "deny"' },
  permissions: OBJECT,
  capabilities: TEXTS,
  priority_min: { is: Number.isSafeInteger, words: 'an integer' },
  provider: TEXT,
  model: TEXT,
  request: { is: value => v.is(ParticipationRequest, value), words: 'a request for network participation' },
}

/** Parses the output of a program: JSON or empty. Throws otherwise. */
export function parsePatch(text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return parseJson(text)
  } catch (error) {
    throw new Error(`invalid JSON on standard output: ${messageOf(error)}`)
  }
}

/** Payload names of patch fields, which are the names of their matchers. */
const PAYLOAD_NAMES: Readonly<Record<string, string>> = {
  name: 'tool_name',
  namespace: 'tool_namespace',
  read_only: 'tool_read_only',
  class: 'decision_class',
}

/** Reason for which a patch would allow more than before; undefined when it would not. */
function escalation(patch: HookPayload, payload: HookPayload): string | undefined {
  if (patch.decision === 'allow' && payload.decision !== 'allow')
    return 'a hook cannot change a decision from deny to allow'
  if (patch.read_only === true && payload.tool_read_only !== true)
    return 'a hook cannot declare a tool read-only that is not'
  if (
    patch.request !== undefined &&
    isWider(patch.request as ParticipationRequest, payload.request as ParticipationRequest)
  )
    return 'a hook cannot request more network participation than the original request'
  const before = String(payload.decision_class)
  if (typeof patch.class === 'string' && isReading(patch.class) && !isReading(before))
    return `a hook cannot lower the class from ${before} to ${shown(patch.class, 32)}`
  return undefined
}

/**
 * Validates a patch and applies it. `reason` explains a denial. A hook cannot turn a denial into an approval. Throws when
 * the answer is not an object.
 */
export function judge(event: HookEvent, payload: HookPayload, answer: unknown, fixed?: Fixed): Judged {
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
    if (fixed?.members.includes(member as PatchMember))
      return { outcome: 'rejected', error: `a patch cannot set ${member} here: ${fixed.why}`, patch: answer }
    const { is, words } = FORMS[member as PatchMember]
    if (!is(patch[member], payload[member]))
      return { outcome: 'rejected', error: `${member}: must be ${words}`, patch: answer }
  }
  const { deny, cancel, ...changes } = patch
  const refusals = [deny, cancel].filter(value => value !== undefined && value !== false)
  if (refusals.length > 0 || patch.decision === 'deny') {
    const said = [...refusals, reason].find(value => typeof value === 'string' && value !== '')
    const words = typeof said === 'string' ? said : ''
    return { outcome: 'denied', reason: clip(words, 1000) || 'denied by a hook', patch: answer }
  }
  const more = escalation(patch, payload)
  if (more !== undefined) return { outcome: 'rejected', error: more, patch: answer }
  const changed = Object.entries(changes).map(([member, value]) => [PAYLOAD_NAMES[member] ?? member, value])
  return { outcome: 'applied', payload: { ...payload, ...Object.fromEntries(changed) }, patch: answer }
}
