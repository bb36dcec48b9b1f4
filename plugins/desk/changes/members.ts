import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { clip } from '../../../kernel/kit/text.js'
import type { PlannedMember } from '../../../schemas/daemon/changes.js'

/** Most members in a plan or a change; the rest is omitted. */
const MAX_MEMBERS = 100
/** Most characters of a displayed value. */
const MAX_VALUE = 200
/** Depth to which members of nested objects are listed individually. */
const DEPTH = 3

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value at a dotted path; the whole value for an empty path. */
export function at(value: unknown, path: string): unknown {
  return path === '' ? value : path.split('.').reduce<unknown>((one, name) => Object(one)[name], value)
}

/** The named members that a value has. */
export function pick(value: unknown, names: readonly string[]): Members {
  return isObject(value)
    ? Object.fromEntries(names.filter(name => value[name] !== undefined).map(name => [name, value[name]]))
    : {}
}

/** The parts at dotted paths that a value has, by their path. */
export function pickPaths(value: unknown, paths: readonly string[]): Members {
  return Object.fromEntries(paths.map(path => [path, at(value, path)]).filter(([, part]) => part !== undefined))
}

/** The members of a state that a body also has; with `within`, the members of that member. */
export function shaped(state: unknown, body: unknown, within?: string): Members {
  if (within === undefined) return pick(state, Object.keys(Object(body)))
  return { [within]: shaped(at(state, within), at(body, within)) }
}

/** A body that restores members: members of `body` that the former state lacked become null. */
export function withNulls(core: unknown, body: unknown, within?: string): Members {
  if (within !== undefined) return { [within]: withNulls(at(core, within), at(body, within)) }
  return { ...Object.fromEntries(Object.keys(Object(body)).map(name => [name, null])), ...Object(core) }
}

/** A value without members that change by themselves: times, durations, the last and the next run. */
export function lasting(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lasting)
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([name]) => !/(_at|_ms|_seconds)$|^(last|next)_/.test(name))
  return Object.fromEntries(kept.map(([name, member]) => [name, lasting(member)]))
}

/** The members in which two values differ, with their displayed values. An absent value is undefined. */
export function differences(now: unknown, then: unknown): PlannedMember[] {
  return [...between(now, then, '', 0)].slice(0, MAX_MEMBERS)
}

function* between(now: unknown, then: unknown, path: string, depth: number): Generator<PlannedMember> {
  if (isObject(now ?? {}) && isObject(then ?? {}) && (now ?? then) !== undefined && depth < DEPTH) {
    const [a, b] = [(now ?? {}) as Members, (then ?? {}) as Members]
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
      yield* between(a[name], b[name], path === '' ? name : `${path}.${name}`, depth + 1)
  } else if (textOf(now) !== textOf(then)) {
    const [nowText, thenText] = [textOf(now), textOf(then)]
    yield {
      member: path,
      ...(nowText !== undefined && { before: cut(nowText) }),
      ...(thenText !== undefined && { after: cut(thenText) }),
    }
  }
}

const textOf = (value: unknown): string | undefined => (value === undefined ? undefined : canonicalJson(value))
const cut = (text: string): string => {
  const characters = [...clip(text, 2 * MAX_VALUE + 2)]
  return characters.length > MAX_VALUE ? `${characters.slice(0, MAX_VALUE).join('')}…` : text
}
