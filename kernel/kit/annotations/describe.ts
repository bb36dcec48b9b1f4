import * as v from 'valibot'
import type { Annotation } from '../../contract/route.js'
import type { AnnotationKind, DataOf } from './kind.js'

const Place = v.strictObject({
  /** Section of the document and of the contract. */
  area: v.pipe(v.string(), v.minLength(1)),
  /** Error statuses beyond those that the document gives every route, such as 502. Those of `throws` need no mention. */
  errors: v.optional(v.array(v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599)))),
})
/** The place of a route in the API document. */
export type Description = DataOf<typeof Place>

export const Description: AnnotationKind<Description> = { of: 'describe@1', schema: Place }

/** Puts a route into a section of the API document. */
export const describe = (area: string, more: Omit<Description, 'area'> = {}): Annotation => ({
  of: Description.of,
  data: { area, ...more },
})

const Errors = v.array(
  v.strictObject({ code: v.pipe(v.string(), v.regex(/^[A-Za-z][A-Za-z0-9_]*$/)), status: v.number() }),
)
/** An error that a route may return. */
export type ThrownError = DataOf<typeof Errors>[0]

export const Thrown: AnnotationKind<readonly ThrownError[]> = { of: 'throws@1', schema: Errors, many: true }

/**
 * The errors of a route beyond the common ones; their codes appear in the document (`x-error-codes`).
 * @param errors entries of error tables: `throws(ThingErrors.thing_conflict)`
 */
export const throws = (...errors: readonly ThrownError[]): Annotation => ({
  of: Thrown.of,
  data: errors.map(({ code, status }) => ({ code, status })),
})
