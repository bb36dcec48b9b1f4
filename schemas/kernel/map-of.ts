import * as v from 'valibot'

/** Names that every object has a member of, which `v.record` therefore leaves out. */
const RESERVED = ['__proto__', 'constructor', 'prototype'] as const

type Key = v.BaseSchema<string, string, v.BaseIssue<unknown>>
type Value = v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>

/**
 * A schema of values by name: `v.record`, except that a name which it would leave out in silence is an issue. A hook or a
 * server of such a name would be confirmed and then never exist.
 */
export function mapOf<const K extends Key, const V extends Value>(key: K, value: V): v.RecordSchema<K, V, undefined> {
  const schema = v.record(key, value)
  const run = schema['~run']
  return Object.assign(schema, {
    '~run'(dataset: v.UnknownDataset, config: v.Config<v.BaseIssue<unknown>>) {
      const input = dataset.value
      const result = run.call(schema, dataset, config as never)
      if (typeof input !== 'object' || input === null) return result
      for (const name of RESERVED)
        if (Object.hasOwn(input, name)) {
          const value = input[name as never]
          v._addIssue(
            schema as Value,
            'name',
            result as v.OutputDataset<unknown, v.BaseIssue<unknown>>,
            config as never,
            {
              message: 'is reserved: use another name',
              path: [{ type: 'object', origin: 'key', input: input as Record<string, unknown>, key: name, value }],
            },
          )
        }
      return result
    },
  })
}
