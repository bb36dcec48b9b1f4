import { type Envelope, memberOf } from './envelope.js'

/** What a template may name; `Data` has members of its own. */
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
/** Characters of a rendered prompt. */
const MAX_RENDERED = 1024 * 1024

type Field = keyof typeof FIELDS

/** What an action names, as a path; undefined when it is none that templates know. */
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
 * What is wrong with the prompt of a trigger as a template, or undefined. Known are `{{ .Kind }}` and the other fields,
 * `{{ .Data.a.b }}` and `{{ index .Data "a" "b" }}`; a text without braces is itself.
 */
export function templateProblem(prompt: string): string | undefined {
  for (const [whole, , inner = ''] of prompt.matchAll(ACTION)) {
    if (pathOf(inner)) continue
    return `the template does not know ${whole.slice(0, 80)}; it has .Kind, .Scope, .WorkspaceID, .Source and .Data`
  }
  const rest = prompt.replace(ACTION, '')
  return /\{\{|\}\}/.test(rest) ? 'the template has {{ or }} without its other half' : undefined
}

/**
 * The prompt with what happened in the place of its actions, trimmed; one without braces as it is. What is not there is
 * empty, objects and lists are JSON, and `-` takes away the space before or behind. Undefined: it would be too long.
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
    // Nested deeper than the stack is.
    return ''
  }
}
