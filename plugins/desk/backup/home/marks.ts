import * as v from 'valibot'

/** Marks a home whose restore has not finished. */
export const RESTORING_FILE = 'restoring.json'
export const Restoring = v.object({ from: v.string() })

/** The identity of a home, read before its database is opened. */
export const HOME_FILE = 'home.json'
export const HomeMark = v.object({
  /** Random; a copied home has the same id. */
  id: v.string(),
  /** Canonical path of the home. */
  path: v.string(),
  /** SHA-256 of the migrations of the program that ran it last. */
  schema: v.optional(v.string()),
  product_version: v.optional(v.string()),
})
export type HomeMark = v.InferOutput<typeof HomeMark>
