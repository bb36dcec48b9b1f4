import * as v from 'valibot'

/** In a home whose restore has not ended. */
export const RESTORING_FILE = 'restoring.json'
export const Restoring = v.object({ from: v.string() })

/** What a home is, beside its database: read before that is opened. */
export const HOME_FILE = 'home.json'
export const HomeMark = v.object({
  /** Random; a copy has the same. */
  id: v.string(),
  /** Where the home is. */
  path: v.string(),
  /** SHA-256 of the migrations of the program that ran it last. */
  schema: v.optional(v.string()),
  product_version: v.optional(v.string()),
})
export type HomeMark = v.InferOutput<typeof HomeMark>
