import { clip } from '../../../../kernel/kit/text.js'
import type { Question } from './pattern-thread.js'

/** A JSON Schema or a part of one. */
type Schema = Readonly<Record<string, unknown>>

const MAX_DEPTH = 32
const MAX_NODES = 10_000
const MAX_BYTES = 256 * 1024
const MAX_PATTERN = 512
/** Steps of one validation, about 20 ms: input beyond it is refused, however the schema multiplies the work. */
const MAX_STEPS = 60_000
/** Characters compared or counted in the time of one step. */
const CHARACTERS_A_STEP = 64
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The problem of an untrusted schema; undefined if it can be validated against. Bounded in time and size. */
export function schemaProblem(schema: unknown): string | undefined {
  if (!isObject(schema)) return 'it is not an object'
  if (schema.type !== undefined && schema.type !== 'object') return 'it does not describe an object'
  const patterns: string[] = []
  let nodes = 0
  const visit = (value: unknown, depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return `it is deeper than ${MAX_DEPTH} levels`
    if (++nodes > MAX_NODES) return `it has more than ${MAX_NODES} parts`
    if (typeof value !== 'object' || value === null) return undefined
    for (const [name, member] of Object.entries(value)) {
      if (name === '$ref' && typeof member === 'string' && !member.startsWith('#'))
        return `it refers to ${clip(member, 100)}`
      if (name === 'pattern' && typeof member === 'string') patterns.push(member)
      const problem = visit(member, depth + 1)
      if (problem) return problem
    }
    return undefined
  }
  const problem = visit(schema, 0)
  if (problem) return problem
  // Deep schemas fail before serialization, and large ones before any pattern is compiled.
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_BYTES) return `it is larger than ${MAX_BYTES} bytes`
  return patterns.every(pattern => flagsOf(pattern) !== undefined) ? undefined : 'it has an invalid pattern'
}

/** Matches texts against patterns outside the daemon's main thread; undefined on timeout. */
export type AskPatterns = (questions: readonly Question[]) => Promise<readonly boolean[] | undefined>

/**
 * The problem of a value as `path: what`; undefined if the schema allows it. Schema and value are untrusted, so the
 * time is limited. Unanswered patterns are collected, assumed to match, and evaluated together; the value is validated
 * again until no new ones appear.
 */
export async function inputProblem(schema: Schema, value: unknown, ask: AskPatterns): Promise<string | undefined> {
  const answers = new Map<string, boolean>()
  for (let steps = MAX_STEPS; ; ) {
    const check = new Check(schema, steps, answers)
    const problem = check.problem(schema, value, '', 0)
    // After the limit, the result is invalid: an incomplete `not` would allow anything.
    if (check.isOver) return `${at('')}: its schema needs too many steps`
    const open = [...check.open.values()]
    if (open.length === 0) return problem
    const matches = await ask(open)
    if (!matches) return `${at('')}: its patterns take too long`
    for (const [n, key] of [...check.open.keys()].entries()) answers.set(key, matches[n] === true)
    steps = check.left
  }
}

type Judge = (
  this: void,
  check: Check,
  schema: Schema,
  value: unknown,
  path: string,
  depth: number,
) => string | undefined

/** One validation with its remaining budget. */
class Check {
  #steps = 0
  /** Unanswered patterns, by key. */
  readonly open = new Map<string, Question>()

  constructor(
    private readonly root: Schema,
    private readonly most: number,
    private readonly answers: ReadonlyMap<string, boolean>,
  ) {}

  /** Whether the budget is exceeded, which makes the result invalid. */
  get isOver(): boolean {
    return this.#steps > this.most
  }

  /** Remaining steps. */
  get left(): number {
    return this.most - this.#steps
  }

  /** Pays for as many steps. */
  spend(steps: number): void {
    this.#steps += steps
  }

  /** Pays for reading a whole text. */
  read(text: string): string {
    this.#steps += text.length / CHARACTERS_A_STEP
    return text
  }

  /** Whether a text matches; true while unknown. */
  matches(pattern: string, text: string): boolean {
    this.spend(1)
    if (this.isOver) return true
    const flags = flagsOf(pattern)
    if (flags === undefined) return false
    const key = `${pattern}\n${this.read(text)}`
    const answer = this.answers.get(key)
    if (answer === undefined) this.open.set(key, [pattern, flags, text])
    return answer ?? true
  }

  problem(schema: unknown, value: unknown, path: string, depth: number): string | undefined {
    this.#steps++
    if (schema === true || schema === undefined) return undefined
    if (schema === false) return `${at(path)}: nothing is allowed here`
    if (!isObject(schema)) return undefined
    const { enum: values, required, type } = schema
    this.#steps += list(values).length + list(required).length + list(type).length
    if (depth > MAX_DEPTH * 2 || this.isOver) return `${at(path)}: its schema needs too many steps`
    for (const judge of JUDGES) {
      const problem = judge(this, schema, value, path, depth + 1)
      if (problem) return problem
    }
    return undefined
  }

  allows(schema: unknown, value: unknown, path: string, depth: number): boolean {
    return this.problem(schema, value, path, depth) === undefined
  }

  referred(reference: string): unknown {
    let node: unknown = this.root
    for (const part of reference.slice(1).split('/').slice(1)) {
      if (typeof node !== 'object' || node === null) return false
      const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
      node = Object.hasOwn(node, name) ? (node as Record<string, unknown>)[name] : false
    }
    return node
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // The reference is not valid URI encoding, so it is used as it is.
    return part
  }
}

const at = (path: string) => (path === '' ? 'input' : path)
const below = (path: string, name: string | number) => (path === '' ? String(name) : `${path}.${name}`)
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const IS_TYPE: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: value => typeof value === 'string',
  number: value => typeof value === 'number',
  integer: value => Number.isInteger(value),
  boolean: value => typeof value === 'boolean',
  null: value => value === null,
}

const ofType: Judge = (_, { type }, value, path) => {
  const types = typeof type === 'string' ? [type] : list(type).map(String)
  return types.length === 0 || types.some(name => IS_TYPE[name]?.(value) ?? true)
    ? undefined
    : `${at(path)}: ${types.join(' or ')} wanted`
}

const oneOfValues: Judge = (check, schema, value, path) => {
  if (!('const' in schema || Array.isArray(schema.enum))) return undefined
  const text = check.read(JSON.stringify(value) ?? '')
  const is = (item: unknown) => !check.isOver && check.read(JSON.stringify(item) ?? '') === text
  if ('const' in schema && !is(schema.const))
    return `${at(path)}: ${clip(String(JSON.stringify(schema.const)), 100)} wanted`
  if (!Array.isArray(schema.enum) || schema.enum.some(is)) return undefined
  return `${at(path)}: one of ${clip(JSON.stringify(schema.enum), 300)} wanted`
}

const bounds: Judge = (check, schema, value, path) => {
  const named = typeof value === 'string' ? 'Length' : 'Items'
  const [least, most] = [schema[`min${named}`], schema[`max${named}`]]
  const isBounded = typeof least === 'number' || typeof most === 'number'
  const size =
    typeof value === 'string' && isBounded
      ? [...check.read(value)].length
      : Array.isArray(value)
        ? value.length
        : undefined
  if (size !== undefined && typeof least === 'number' && size < least) return `${at(path)}: at least ${least} long`
  if (size !== undefined && typeof most === 'number' && size > most) return `${at(path)}: at most ${most} long`
  if (typeof value !== 'number') return undefined
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  if (typeof minimum === 'number' && value < minimum) return `${at(path)}: at least ${minimum}`
  if (typeof maximum === 'number' && value > maximum) return `${at(path)}: at most ${maximum}`
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
    return `${at(path)}: more than ${exclusiveMinimum}`
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
    return `${at(path)}: less than ${exclusiveMaximum}`
  return undefined
}

const matching: Judge = (check, { pattern }, value, path) =>
  typeof pattern !== 'string' || typeof value !== 'string' || check.matches(pattern, value)
    ? undefined
    : `${at(path)}: does not match its pattern`

const members: Judge = (check, schema, value, path, depth) => {
  if (!isObject(value)) return undefined
  for (const name of list(schema.required))
    if (typeof name === 'string' && !Object.hasOwn(value, name)) return `${below(path, name)}: required`
  const known = isObject(schema.properties) ? schema.properties : {}
  const patterns = isObject(schema.patternProperties) ? Object.entries(schema.patternProperties) : []
  check.spend(patterns.length)
  for (const [name, member] of Object.entries(value)) {
    if (check.isOver) return undefined
    const memberPath = below(path, clip(name, 100))
    const own = Object.hasOwn(known, name)
    const fitting = patterns.filter(([pattern]) => check.matches(pattern, name))
    for (const part of [...(own ? [known[name]] : []), ...fitting.map(([, part]) => part)]) {
      const problem = check.problem(part, member, memberPath, depth)
      if (problem) return problem
    }
    if (own || fitting.length > 0 || schema.additionalProperties === undefined) continue
    if (schema.additionalProperties === false) return `${memberPath}: no such member`
    const problem = check.problem(schema.additionalProperties, member, memberPath, depth)
    if (problem) return problem
  }
  return undefined
}

const items: Judge = (check, schema, value, path, depth) => {
  if (!Array.isArray(value)) return undefined
  const first = list(schema.prefixItems)
  for (const [n, item] of value.entries()) {
    const problem = check.problem(n < first.length ? first[n] : schema.items, item, below(path, n), depth)
    if (problem) return problem
  }
  return undefined
}

const combined: Judge = (check, schema, value, path, depth) => {
  for (const part of list(schema.allOf)) {
    const problem = check.problem(part, value, path, depth)
    if (problem) return problem
  }
  const { anyOf, oneOf } = schema
  if (Array.isArray(anyOf) && !anyOf.some(part => check.allows(part, value, path, depth)))
    return `${at(path)}: matches none of the allowed forms`
  if (Array.isArray(oneOf) && oneOf.filter(part => check.allows(part, value, path, depth)).length !== 1)
    return `${at(path)}: does not match exactly one of the allowed forms`
  return 'not' in schema && check.allows(schema.not, value, path, depth)
    ? `${at(path)}: this is not allowed`
    : undefined
}

const referred: Judge = (check, { $ref }, value, path, depth) =>
  typeof $ref === 'string' ? check.problem(check.referred(check.read($ref)), value, path, depth) : undefined

const JUDGES: readonly Judge[] = [ofType, oneOfValues, bounds, matching, members, items, combined, referred]

/** Flags with which a pattern compiles; undefined if it does not, or is too long. */
function flagsOf(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN) return undefined
  // Many patterns are written for engines without Unicode mode.
  return ['u', ''].find(flags => {
    try {
      return new RegExp(pattern, flags)
    } catch {
      return undefined
    }
  })
}
