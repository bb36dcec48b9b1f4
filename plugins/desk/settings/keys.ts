import * as v from 'valibot'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { KernelErrors, type Setting } from '../../../kernel/plugin.js'
import { durationMs, durationText } from '../../../schemas/duration.js'

/** One member of a section: its schema in requests and replies, and the key of the configuration that holds it. */
export interface Key {
  readonly isKey: true
  /** Schema in requests, replies and the file. */
  readonly wire: v.GenericSchema
  /** The key, if it differs from the section's prefix plus the member's path. */
  readonly path?: string
  /** The owner stores milliseconds; requests and replies use a text such as `5m`. */
  readonly isDuration?: true
  /** The value that means unset: replies omit the member. */
  readonly absent?: unknown
  /** Read-only in the section: a request may only repeat its value. It is changed by its key. */
  readonly isShown?: true
  /** Path below the section's prefix, if it differs from the member's path. */
  readonly at?: string
  /** Present for a key that this plugin owns because no subsystem reads it yet. */
  readonly own?: Pick<Setting, 'default' | 'overlay'> & { readonly apply?: Setting['apply']; readonly text: string }
  /** Schema of the file, if requests are restricted further: files of earlier versions stay valid. */
  readonly stored?: v.GenericSchema
}

/** Members of a section by name, at any depth. */
export interface Members {
  readonly [name: string]: Key | Members
}

/** A member whose key belongs to another plugin. */
export const key = (path: string, wire: v.GenericSchema, more: Pick<Key, 'absent' | 'isShown'> = {}): Key => ({
  isKey: true,
  wire,
  path,
  ...more,
})
/** Like {@link key}, for a duration that its owner stores as milliseconds. */
export const durationKey = (path: string): Key => ({ isKey: true, wire: span, path, isDuration: true })

/** A member whose key this plugin owns. */
export const own = (
  wire: v.GenericSchema,
  initial: unknown,
  text: string,
  more: Partial<NonNullable<Key['own']>> = {},
): Key => ({
  isKey: true,
  wire,
  own: { default: initial, text, ...more },
})

const span = v.pipe(
  v.string(),
  v.check(text => durationMs(text) !== undefined, 'a duration like 30s, 1h30m or 7d'),
)
const whole = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const line = v.pipe(v.string(), v.maxLength(4096))

/** Members whose keys this plugin owns, by type of value. */
export const flag = (initial: boolean, text: string) => own(v.boolean(), initial, text)
export const integer = (initial: number, text: string, max = 1_000_000_000) => own(whole(0, max), initial, text)
export const amount = (initial: number, text: string) =>
  own(v.pipe(v.number(), v.minValue(0), v.maxValue(1_000_000)), initial, text)
export const words = (initial: string, text: string) => own(line, initial, text)
export const duration = (initial: string, text: string) => own(span, initial, text)
/** A duration from one second to the given number of seconds. */
export const shortDuration = (initial: string, seconds: number, text: string) =>
  own(
    v.pipe(
      v.string(),
      v.check(
        text => (durationMs(text) ?? 0) >= 1000 && (durationMs(text) ?? 0) <= seconds * 1000,
        `a duration of 1s to ${seconds}s`,
      ),
    ),
    initial,
    text,
    { apply: 'live' },
  )
export const list = (initial: readonly string[], text: string) =>
  own(v.pipe(v.array(line), v.maxLength(1000)), initial, text)
export const choice = <const T extends readonly string[]>(options: T, initial: T[number], text: string) =>
  own(v.picklist(options), initial, text)

const isKey = (part: Key | Members): part is Key => part.isKey === true

/** All keys of a section, with the dotted paths of their members. */
export function keysIn(members: Members, at = ''): readonly { readonly member: string; readonly key: Key }[] {
  return Object.entries(members).flatMap(([name, part]) => {
    const member = at === '' ? name : `${at}.${name}`
    return isKey(part) ? [{ member, key: part }] : keysIn(part, member)
  })
}

/** The path of a key in the configuration. */
export const pathOf = (prefix: string, member: string, { path, at = member }: Key) =>
  path ?? (prefix === '' ? at : `${prefix}.${at}`)

/** The settings that this plugin owns, for its surface. */
export function settingsOf(prefix: string, section: string, members: Members, apply: Setting['apply']): Setting[] {
  return keysIn(members).flatMap(({ member, key }): Setting[] => {
    if (!key.own) return []
    const { text, ...rest } = key.own
    const schema = v.pipe(key.stored ?? key.wire, v.description(text)) as v.GenericSchema<unknown, unknown>
    return [{ path: pathOf(prefix, member, key), section, schema, apply, ...rest }]
  })
}

/** Schema of a section's configuration in replies. */
export const replySchema = (members: Members): v.GenericSchema => objectOf(members, false)
/** Schema of a section's configuration in requests: an omitted member stays unchanged. */
export const bodySchema = (members: Members): v.GenericSchema => objectOf(members, true)

/** The members of a section, as entries of a larger reply. */
export const replyEntries = (members: Members): v.ObjectEntries => entriesOf(members, false)

function objectOf(members: Members, isBody: boolean): v.GenericSchema {
  const entries = entriesOf(members, isBody)
  return isBody ? v.strictObject(entries) : v.object(entries)
}

function entriesOf(members: Members, isBody: boolean): v.ObjectEntries {
  const entries = Object.entries(members).map(([name, part]) => {
    const schema = isKey(part) ? part.wire : objectOf(part, isBody)
    const isOptional = isBody || (isKey(part) && 'absent' in part)
    return [name, isOptional ? v.optional(schema) : schema] as const
  })
  return Object.fromEntries(entries)
}

/** An effective value in the form of a reply; undefined if the member is omitted. */
export function wireValue(key: Key, value: unknown): unknown {
  if ('absent' in key && value === key.absent) return undefined
  if (key.isDuration && typeof value === 'number') return value === 0 ? '0' : durationText(value)
  return value
}

/** Builds the configuration of a section from its values. */
export function fill(members: Members, read: (member: string, key: Key) => unknown, at = ''): Record<string, unknown> {
  const parts = Object.entries(members).map(([name, part]) => {
    const member = at === '' ? name : `${at}.${name}`
    return [name, isKey(part) ? wireValue(part, read(member, part)) : fill(part, read, member)]
  })
  return Object.fromEntries(parts.filter(([, value]) => value !== undefined))
}

/** Validates a body made by code like the body of a request. @throws Fault `invalid_request` */
export function checkedBody<T>(schema: v.GenericSchema<unknown, T>, body: unknown): T {
  const decoded = v.safeParse(schema, body)
  if (decoded.success) return decoded.output
  const [issue] = decoded.issues
  throw KernelErrors.invalid_request(`body: ${issueLine(issue, 'body')}`)
}
