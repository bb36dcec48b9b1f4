import * as v from 'valibot'

const key = v.pipe(v.string(), v.minLength(1), v.maxBytes(512))
/** Keys of one reply. */
const MAX_PAGE = 1000

/** Parameters of the calls of an extension's storage: `key` of `state/get` and `state/delete`, and those of `state/put` and `state/list`. */
export const StateParams = {
  key: v.strictObject({ key }),
  put: v.strictObject({
    key,
    value: v.pipe(
      v.unknown(),
      v.check(value => value !== undefined, 'a value is expected'),
      v.description('any JSON, at most 64 KiB'),
    ),
  }),
  list: v.strictObject({
    prefix: v.optional(v.pipe(v.string(), v.maxBytes(512), v.description('only keys that begin with it'))),
    after: v.optional(
      v.pipe(v.string(), v.maxBytes(512), v.description('only keys behind this one, in ascending order')),
    ),
    limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE)), 200),
  }),
}
