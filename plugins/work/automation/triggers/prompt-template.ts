import { clip } from '../../../../kernel/kit/text.js'
import { type Envelope, memberOf } from './envelope.js'

/** Fields available in templates; `Data` has nested members. */
const FIELDS = {
  Kind: envelope => envelope.kind,
  Scope: envelope => envelope.scope,
  WorkspaceID: envelope => envelope.workspaceId ?? '',
  Source: envelope => envelope.source,
  Data: envelope => envelope.data,
} as const satisfies Readonly<Record<string, (envelope: Envelope) => unknown>>
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

/** One `{{ … }}` of a template, with the text before it. */
interface Action {
  readonly before: string
  readonly whole: string
  /** The text between the braces, without trim marks. */
  readonly inner: string
  readonly trimsBefore: boolean
  readonly trimsBehind: boolean
}

/** Parses a template in linear time: a regular expression would rescan the rest of it at every unclosed brace. */
function parsed(prompt: string): { readonly actions: readonly Action[]; readonly rest: string } {
  const actions: Action[] = []
  for (let at = 0; ; ) {
    const start = prompt.indexOf('{{', at)
    const end = start < 0 ? -1 : prompt.indexOf('}}', start + 2)
    if (end < 0) return { actions, rest: prompt.slice(at) }
    const between = prompt.slice(start + 2, end)
    const trimsBefore = between.startsWith('-')
    const trimsBehind = between.endsWith('-')
    actions.push({
      ...{ before: prompt.slice(at, start), whole: prompt.slice(start, end + 2), trimsBefore, trimsBehind },
      inner: between.slice(trimsBefore ? 1 : 0, trimsBehind ? -1 : undefined),
    })
    at = end + 2
  }
}

/**
 * Validates a prompt template; undefined when it is valid. Supported are `{{ .Kind }}` and the other fields,
 * `{{ .Data.a.b }}` and `{{ index .Data "a" "b" }}`. A prompt without braces is used verbatim.
 */
export function templateProblem(prompt: string): string | undefined {
  const { actions, rest } = parsed(prompt)
  for (const { whole, inner } of actions) {
    if (pathOf(inner)) continue
    return `unknown template field ${clip(whole, 80)}; available: .Kind, .Scope, .WorkspaceID, .Source, .Data`
  }
  const isHalf = [...actions.map(({ before }) => before), rest].some(text => /\{\{|\}\}/.test(text))
  return isHalf ? 'unbalanced {{ or }} in the template' : undefined
}

/**
 * Renders a prompt template and trims the result. Missing values are empty, objects and arrays are rendered as JSON, and
 * `{{-` and `-}}` trim adjacent white space. Undefined when the result would be too long.
 */
export function renderTemplate(prompt: string, envelope: Envelope): string | undefined {
  if (!/\{\{|\}\}/.test(prompt)) return prompt
  let [text, trims] = ['', false]
  const append = (literal: string, trimsEnd: boolean) => {
    const start = trims ? literal.trimStart() : literal
    text += trimsEnd ? start.trimEnd() : start
  }
  const { actions, rest } = parsed(prompt)
  for (const { before, inner, trimsBefore, trimsBehind } of actions) {
    append(before, trimsBefore)
    text += shownOf(valueAt(pathOf(inner), envelope))
    if (text.length > MAX_RENDERED) return undefined
    trims = trimsBehind
  }
  append(rest, false)
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
