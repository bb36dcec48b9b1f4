import type { JsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { Bundle } from '../../plugins/delivery/bundles/manifest.js'
import { CORE, Manifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { DIALECT, jsonSchemaOf } from './json-schema-of.js'

/** The JSON Schema of `extension.toml` and `extension.json`. */
export const extensionSchema = (version: string): JsonSchema =>
  withTable(Manifest, 'extension', `extension.toml of svc ${version}`, CORE)

/** The JSON Schema of the file of a bundle. */
export const bundleSchema = (version: string): JsonSchema => withTable(Bundle, 'bundle', `bundle of svc ${version}`)

/**
 * The schema of a file whose members are at the root or in a named table.
 * @param movable members that may be in the table; default: all
 */
function withTable(schema: v.GenericSchema, table: string, title: string, movable?: readonly string[]): JsonSchema {
  const { properties = {}, required = [], ...rest } = jsonSchemaOf(schema)
  const inside = Object.entries(properties).filter(([name]) => movable === undefined || movable.includes(name))
  const isMovable = (name: string) => inside.some(([other]) => other === name)
  const either = required.filter(isMovable).map(name => ({
    anyOf: [{ required: [name] }, { required: [table], properties: { [table]: { required: [name] } } }],
  }))
  return {
    $schema: DIALECT,
    title,
    ...rest,
    properties: {
      $schema: { type: 'string' },
      [table]: { type: 'object', properties: Object.fromEntries(inside), additionalProperties: false },
      ...properties,
    },
    required: required.filter(name => !isMovable(name)),
    ...(either.length > 0 && { allOf: either }),
  } as JsonSchema
}
