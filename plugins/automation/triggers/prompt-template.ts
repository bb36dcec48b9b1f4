import { type Envelope, memberOf } from './envelope.js'

/** Fields available in templates; `Data` has nested members. */
const FIELDS = {
  Kind: envelope => envelope.kind,
  Scope: envelope => envelope.scope,
  WorkspaceID: envelope => envelope.workspaceId ?? '',
  Source: envelope => envelope.source,
  Data: envelope => envelope.data,
} as const satisfies Readonly<Record<string, (envelope: Envelope) => unknown>>
const ACTION = /\{\{(-?)([\s\S]*?)(-?)\}\}/g
const FIELD = /^\.([A-Za-z]+)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)$/
const INDEX = /^index\s+\.Data((?:\s+"(?:[^"\\]|\\.)*")+)$/
const STRING = /"(?:[^"\\]|\\.)*"/g
/** Maximum number of characters of a rendered prompt. */
const MAX_RENDERED = 1024 * 1024

type Field = keyof typeof FIELDS

/** The path that an action names; undefined when the action is not supported. */
function pathOf(inner: string): readonly [Field, ...string[]] | undefined {
  const text = inner.trim()
  const index = INDEX.exec(text)?.[1]
  if (index !== undefined) {
    const keys = (index.match(STRING) ?? []).map(unquoted)
    return keys.some(key => key === undefined) ? undefined : ['Data', ...(keys as string[])]
  }
  const [, field = '', below = ''] = FIELD.exec(text) ?? []
  if (!Object.hasOwn(FIELDS, field) || (below !== '' && field !== 'Data')) return undefined
  return [field as Field, ...below.split('.').slice(1)]
}

function unquoted(text: string): string | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Validates a prompt template; undefined when it is valid. Supported are `{{ .Kind }}` and the other fields,
 * `{{ .Data.a.b }}` and `{{ index .Data "a" "b" }}`. A prompt without braces is used verbatim.
 */
export function templateProblem(prompt: string): string | undefined {
  for (const [whole, , inner = ''] of prompt.matchAll(ACTION)) {
    if (pathOf(inner)) continue
    return `unknown template field ${whole.slice(0, 80)}; available: .Kind, .Scope, .WorkspaceID, .Source, .Data`
  }
  const rest = prompt.replace(ACTION, '')
  return /\{\{|\}\}/.test(rest) ? 'unbalanced {{ or }} in the template' : undefined
}

/**
 * Renders a prompt template and trims the result. Missing values are empty, objects and arrays are rendered as JSON, and
 * `{{-` and `-}}` trim adjacent white space. Undefined when the result would be too long.
 */
export function renderTemplate(prompt: string, envelope: Envelope): string | undefined {
  if (!/\{\{|\}\}/.test(prompt)) return prompt
  let [text, from, trims] = ['', 0, false]
  const append = (literal: string, trimsEnd: boolean) => {
    const start = trims ? literal.trimStart() : literal
    text += trimsEnd ? start.trimEnd() : start
  }
  for (const action of prompt.matchAll(ACTION)) {
    const [whole, before, inner = '', behind] = action
    append(prompt.slice(from, action.index), before === '-')
    text += shownOf(valueAt(pathOf(inner), envelope))
    if (text.length > MAX_RENDERED) return undefined
    from = action.index + whole.length
    trims = behind === '-'
  }
  append(prompt.slice(from), false)
  return text.trim()
}

function valueAt(path: ReturnType<typeof pathOf>, envelope: Envelope): unknown {
  if (!path) return ''
  const [field, ...keys] = path
  return memberOf(FIELDS[field](envelope), keys)
}

function shownOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'object') return String(value)
  try {
    return JSON.stringify(value)
  } catch {
    // Too deeply nested for the stack.
    return ''
  }
}
