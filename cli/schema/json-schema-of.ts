import { type ConversionConfig, type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'

/** The dialect of every document. */
export const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** What is judged by code, a sum or a comparison of two members, is left out: a schema refuses less than the daemon, never more. */
const CONVERSION: ConversionConfig = {
  target: 'draft-2020-12',
  typeMode: 'input',
  errorMode: 'ignore',
  overrideAction: ({ valibotAction, jsonSchema }) => {
    if (valibotAction.type !== 'regex') return undefined
    const { source, flags } = (valibotAction as unknown as { readonly requirement: RegExp }).requirement
    // A pattern has no flags: without `i` it would refuse what the daemon takes. Of two patterns the first one stays.
    return flags.includes('i') || jsonSchema.pattern !== undefined ? jsonSchema : { ...jsonSchema, pattern: source }
  },
}

/** What may be written for a value, as JSON Schema. */
export function jsonSchemaOf(schema: v.GenericSchema): JsonSchema {
  const { $schema: _, ...rest } = toJsonSchema(schema, CONVERSION)
  return rest
}
