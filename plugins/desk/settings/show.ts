import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { durationText } from '../../../schemas/duration.js'

/** A value as it is written in the file: durations, stored as milliseconds, become texts again. */
export function asWritten(schema: Setting['schema'], value: unknown): unknown {
  if (typeof value === 'number' && !v.is(schema, value)) {
    const text = value === 0 ? '0' : durationText(value)
    return v.is(schema, text) ? text : value
  }
  const { entries } = schema as { entries?: Record<string, v.GenericSchema> }
  if (!entries || typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, entries[name] ? asWritten(entries[name], member) : member]),
  )
}

/** A value with one part replaced, or removed if `part` is undefined. Missing objects on the path are created. */
export function withPart(value: unknown, [name, ...rest]: readonly string[], part: unknown): unknown {
  if (name === undefined) return part
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const members = Object.entries(isObject ? value : {})
  const before = members.find(([key]) => key === name)?.[1]
  const after = withPart(before, rest, part)
  const others = members.filter(([key]) => key !== name)
  if (after === undefined) return Object.fromEntries(others)
  return before === undefined
    ? Object.fromEntries([...members, [name, after]])
    : Object.fromEntries(members.map(([key, old]) => [key, key === name ? after : old]))
}

/** The part of a value at a path of names; undefined if it does not exist. */
export function partOf(value: unknown, names: readonly string[]): unknown {
  let at = value
  for (const name of names) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[name]
  }
  return at
}
