import { type ConversionConfig, type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'

/** The JSON Schema dialect of all documents. */
export const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** Checks in code, such as sums or comparisons of members, are omitted: a schema refuses less than the daemon, never more. */
const CONVERSION: ConversionConfig = {
  target: 'draft-2020-12',
  typeMode: 'input',
  errorMode: 'ignore',
  overrideAction: ({ valibotAction, jsonSchema }) => {
    if (valibotAction.type !== 'regex') return undefined
    const { source, flags } = (valibotAction as unknown as { readonly requirement: RegExp }).requirement
    // JSON Schema patterns have no flags: without `i` this one would refuse valid values. Of two patterns the first one is kept.
    return flags.includes('i') || jsonSchema.pattern !== undefined ? jsonSchema : { ...jsonSchema, pattern: source }
  },
}

/** The JSON Schema of the written form of a value. */
export function jsonSchemaOf(schema: v.GenericSchema): JsonSchema {
  const { $schema: _, ...rest } = toJsonSchema(schema, CONVERSION)
  return rest
}
