import { clip } from '../../../kernel/kit/text.js'
import type {
  Contribution,
  Faults,
  PluginKernel,
  RedactedStream,
  Redactor,
  SecretSource,
} from '../../../kernel/plugin.js'
import { LONGEST_FORM } from './forms.js'
import { SecretMatcher } from './matcher.js'
import { RedactionEnabled } from './settings.js'

/** Deeper data is cut off, because output must not contain unsearched data. */
const DEEPEST = 64
/** Members that programs read. They must stay intact if a value equals an ordinary word. */
const READ_BY_PROGRAMS = /^(?:id|kind|type|status|state|code|level)$|(?:_id|Id)$/
/** An ordinary word in such a member; any other text is searched. */
const WORD = /^[A-Za-z][A-Za-z_.:-]{0,31}$/
/** Names of members in schemas. A longer name, or one with other characters, may be input and is searched. */
const MEMBER = /^[A-Za-z][A-Za-z_]{0,14}$/

interface Followed {
  readonly owner: string
  /** Accepts no further value; the existing ones stay hidden. */
  readonly leave: () => void
  readonly forget: () => void
}

/** One matcher for the registered values of all plugins; idle without any. */
export class RedactionService implements Redactor {
  readonly isOn: boolean
  readonly #matcher = new SecretMatcher()
  readonly #followed = new Map<SecretSource, Followed>()
  /** Sources of plugins that are being reloaded or have left. */
  #left: Followed[] = []

  constructor(private readonly kernel: PluginKernel<{ faults: typeof Faults }>) {
    this.isOn = kernel.config.get(RedactionEnabled)
    if (!this.isOn) kernel.log.warn('redact.enabled is off: secrets appear unredacted in logs, events and errors')
  }

  text(text: string, max = Number.POSITIVE_INFINITY): string {
    return clip(this.#matcher.replace(clip(text, max + LONGEST_FORM)), max)
  }

  value<T>(value: T, kept = (name: string) => READ_BY_PROGRAMS.test(name)): T {
    if (this.#matcher.size === 0) return value
    const clean = (item: unknown, name: string, depth: number): unknown => {
      if (this.#isClean(item, name, kept, depth)) return item
      if (typeof item === 'string') return this.#matcher.replace(item)
      if (depth > DEEPEST) return '[too deep]'
      if (item instanceof Error) return redactedError(item, member => clean(member, '', depth + 1))
      const { toJSON } = item as { toJSON?: unknown }
      if (typeof toJSON === 'function') return clean(toJSON.call(item, name), name, depth + 1)
      if (Array.isArray(item)) return item.map(member => clean(member, name, depth + 1))
      const members = Object.entries(item as object)
      return Object.fromEntries(
        unique(members.map(([key, member]) => [this.#member(key), clean(member, key, depth + 1)])),
      )
    }
    return clean(value, '', 0) as T
  }

  /** Whether nothing in a value is replaced, as is usual. Copies nothing, because each write of a record asks several times. */
  #isClean(item: unknown, name: string, kept: (name: string) => boolean, depth: number): boolean {
    if (typeof item === 'string') return (kept(name) && WORD.test(item)) || this.#matcher.replace(item) === item
    if (typeof item !== 'object' || item === null || ArrayBuffer.isView(item)) return true
    if (depth > DEEPEST || item instanceof Error || 'toJSON' in item) return false
    if (Array.isArray(item)) return item.every(member => this.#isClean(member, name, kept, depth + 1))
    const isClean = (key: string) =>
      this.#member(key) === key && this.#isClean(item[key as never], key, kept, depth + 1)
    return Object.keys(item).every(isClean)
  }

  stream(): RedactedStream {
    return this.#matcher.stream()
  }

  /** Follows new sources, and forgets removed ones when their plugin runs again. */
  follow(sources: readonly Contribution<SecretSource>[]): void {
    const there = new Map(sources.map(({ entry, owner }) => [entry, owner]))
    for (const [source, owner] of there) {
      if (!this.#followed.has(source)) this.#followed.set(source, this.#begin(source, owner))
    }
    for (const [source, followed] of this.#followed) {
      if (there.has(source)) continue
      this.#followed.delete(source)
      followed.leave()
      this.#left.push(followed)
    }
    // Others may still print the values of a plugin that left: they stay hidden until it runs again with its current ones.
    const running = new Set(there.values())
    for (const { owner, forget } of this.#left) if (running.has(owner)) forget()
    this.#left = this.#left.filter(({ owner }) => !running.has(owner))
  }

  #begin(source: SecretSource, owner: string): Followed {
    const ends = new Set<() => void>()
    let isOver = false
    const blaming = <T>(work: () => T): T | undefined => {
      try {
        return work()
      } catch (error) {
        this.kernel.needs.faults(owner, 'secrets', error)
        return undefined
      }
    }
    const stop = blaming(() =>
      source.follow((value, options) => {
        if (isOver) return () => {}
        const end = this.#matcher.add(value, options)
        ends.add(end)
        return () => {
          if (!isOver && ends.delete(end)) end()
        }
      }),
    )
    const leave = () => {
      isOver = true
      blaming(() => stop?.())
    }
    return { owner, leave, forget: () => ends.forEach(end => void end()) }
  }

  #member(name: string): string {
    return MEMBER.test(name) ? name : this.#matcher.replace(name)
  }
}

/** An error with all parts that a logger may print redacted: text, stack, causes and added members. */
function redactedError(error: Error, clean: (member: unknown) => unknown): Error {
  const { name, message, stack, cause } = error
  const members = { ...error, message, stack, cause, errors: error instanceof AggregateError ? error.errors : [] }
  const before = Object.entries(members)
  const after = before.map(([key, member]) => [key, clean(member)] as const)
  if (after.every(([, member], at) => member === before[at]?.[1])) return error
  const { errors, ...safe } = Object.fromEntries(after) as unknown as typeof members
  const { message: text, cause: why, ...more } = safe
  const options = { cause: why }
  const copy = errors.length > 0 ? new AggregateError(errors, text, options) : new Error(text, options)
  return Object.assign(copy, more, { name })
}

/** Members with unique names: names that became equal by the redaction are numbered. */
function* unique<T>(members: readonly (readonly [name: string, member: T])[]): Generator<[string, T]> {
  const taken = new Set<string>()
  for (const [name, member] of members) {
    let own = name
    for (let number = 2; taken.has(own); number++) own = `${name} ${number}`
    taken.add(own)
    yield [own, member]
  }
}
