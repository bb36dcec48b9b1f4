import * as v from 'valibot'

/** In a home whose restore has not ended. */
export const RESTORING_FILE = 'restoring.json'
export const Restoring = v.object({ from: v.string() })

/** Where a home is, and what its database was when it ran last. */
export const HOME_FILE = 'home.json'
export const HomeMark = v.object({
  path: v.string(),
  /** Device and inode of its folder: a copy has others. */
  device: v.string(),
  inode: v.string(),
  /** SHA-256 of the migrations of the program that ran it last. */
  schema: v.optional(v.string()),
  product_version: v.optional(v.string()),
  /** An upgrade has begun: the backup from before it. */
  upgrade: v.optional(v.object({ backup: v.string(), from: v.optional(v.string()) })),
})
export type HomeMark = v.InferOutput<typeof HomeMark>
