import * as v from 'valibot'
import { StringMap } from './common.js'
import { DiagnosticItem } from './diagnostic.js'

/** The body of every error reply: `code` is stable, `error` is for people. */
export const ErrorBody = v.object({
  error: v.string(),
  code: v.optional(v.string()),
  details: v.optional(StringMap),
  diagnostic: v.nullish(DiagnosticItem),
})
export type ErrorBody = v.InferOutput<typeof ErrorBody>
