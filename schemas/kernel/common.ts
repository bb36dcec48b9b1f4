/**
 * Building blocks of the wire contract.
 *
 * Conversion to JSON Schema: `toJsonSchema(schema, { typeMode: 'output', target: 'draft-2020-12', ignoreActions: ['check'] })`
 * gives the types that a query parameter stands for (`{type: 'integer'}`), `typeMode: 'input'` the strings that carry them. For
 * bodies and replies both give the same, since only query helpers transform. Rules that are code (`check`) have no counterpart.
 */
import * as v from 'valibot'
import { mapOf } from './map-of.js'

const expectedTime = 'Expected a date-time like 2030-01-31T09:00:00.000Z'
/** Refuses dates such as 31 February, which JavaScript moves to March, and offsets without minutes, which it cannot parse. */
const isTime = (text: string): boolean => {
  const midnight = Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
  return new Date(midnight).getUTCDate() === Number(text.slice(8, 10)) && !Number.isNaN(Date.parse(text))
}

/** A point in time: ISO 8601 with seconds and offset. The daemon writes UTC with milliseconds and `Z`. */
export const Timestamp = v.pipe(v.string(), v.isoTimestamp(expectedTime), v.check(isTime, expectedTime))
export type Timestamp = v.InferOutput<typeof Timestamp>

/** A JSON number without fraction. */
export const Integer = v.pipe(v.number(), v.integer())
export type Integer = v.InferOutput<typeof Integer>

/** Free-form members by name, such as `metadata`. */
export const JsonMap = mapOf(v.string(), v.unknown())
export type JsonMap = v.InferOutput<typeof JsonMap>

/** Strings by name, such as `details` of an error or the environment of a process. */
export const StringMap = mapOf(v.string(), v.string())
export type StringMap = v.InferOutput<typeof StringMap>

/** Counts by name, such as `counts_by_severity`. */
export const CountMap = mapOf(v.string(), Integer)
export type CountMap = v.InferOutput<typeof CountMap>

/** A member that may be absent or null, such as the timestamp of a future event. */
export const maybeTimestamp = v.nullish(Timestamp)

/** Position and size of a page in a list. */
export const Page = v.object({
  has_more: v.boolean(),
  limit: Integer,
  next_cursor: v.optional(v.string()),
  total: Integer,
})
export type Page = v.InferOutput<typeof Page>

/**
 * An integer in a query string: an optional minus sign and at most 15 digits, parsed to a number.
 * @param min smallest value accepted
 * @param max largest value accepted
 */
export function queryInteger(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  const text = v.pipe(v.string(), v.regex(/^-?\d{1,15}$/, 'Expected an integer'), v.transform(Number))
  const lower = min === Number.MIN_SAFE_INTEGER ? [] : [v.minValue<number, number>(min)]
  const upper = max === Number.MAX_SAFE_INTEGER ? [] : [v.maxValue<number, number>(max)]
  return v.pipe(text, v.number(), v.integer(), ...lower, ...upper)
}

/** A boolean in a query string: `true`, `false`, `1` or `0`. */
export function queryBoolean() {
  const text = v.picklist(['true', 'false', '1', '0'], 'Expected true or false')
  return v.pipe(
    text,
    v.transform(value => value === 'true' || value === '1'),
    v.boolean(),
  )
}
