import * as v from 'valibot'
import type { Annotation } from '../../contract/route.js'
import type { AnnotationKind } from './kind.js'

/** The place of a route in the API document. */
export interface Description {
  /** Section of the document and of the contract. */
  readonly area: string
  /** Error statuses beyond those that the document gives every route, such as 502. Those of `throws` need no mention. */
  readonly errors?: readonly number[] | undefined
}

export const Description: AnnotationKind<Description> = {
  of: 'describe@1',
  schema: v.strictObject({
    area: v.pipe(v.string(), v.minLength(1)),
    errors: v.optional(v.array(v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599)))),
  }),
}

/** Puts a route into a section of the API document. */
export const describe = (area: string, more: Omit<Description, 'area'> = {}): Annotation => ({
  of: Description.of,
  data: { area, ...more },
})

/** An error that a route may return. */
export interface ThrownError {
  readonly code: string
  readonly status: number
}

export const Thrown: AnnotationKind<readonly ThrownError[]> = {
  of: 'throws@1',
  schema: v.array(v.strictObject({ code: v.pipe(v.string(), v.regex(/^[A-Za-z][A-Za-z0-9_]*$/)), status: v.number() })),
  many: true,
}

/**
 * The errors of a route beyond the common ones; their codes appear in the document (`x-error-codes`).
 * @param errors entries of error tables: `throws(ThingErrors.thing_conflict)`
 */
export const throws = (...errors: readonly ThrownError[]): Annotation => ({
  of: Thrown.of,
  data: errors.map(({ code, status }) => ({ code, status })),
})
