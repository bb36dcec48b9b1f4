import type { JsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'
import { DIALECT, jsonSchemaOf } from './json-schema-of.js'

/** A setting as data, independent of the plugin that owns it. */
export interface SettingSchema {
  readonly path: string
  readonly schema: JsonSchema
}

/** The time when a change takes effect, for the tooltip of an editor. */
const APPLIES: Readonly<Record<Setting['apply'], string>> = {
  live: 'Takes effect at once.',
  'restart-required': 'Takes effect when the daemon starts again.',
  'session-rebind': 'Takes effect for sessions that start from then on.',
}

/** Members of `plugins` that are settings of the daemon; all others are vendors or extensions. */
const OWN_PLUGINS = 'disabled|replace'

export function settingSchema({ path, schema, default: fallback, apply }: Setting): SettingSchema {
  const json = jsonSchemaOf(schema)
  const description = [json.description, APPLIES[apply]].filter(Boolean).join(' ')
  // A default derived from a text, such as a duration, is not valid in the file.
  const isWritten = fallback !== undefined && v.safeParse(schema, fallback).success
  return { path, schema: { ...json, description, ...(isWritten && { default: fallback as never }) } }
}

/** The JSON Schema of config.json with these settings. */
export function configSchema(settings: readonly SettingSchema[], version: string): JsonSchema {
  const root: Branch = {
    $schema: DIALECT,
    title: `config.json of svc ${version}`,
    type: 'object',
    properties: { $schema: { type: 'string', description: 'Address of this schema, for editors.' } },
    additionalProperties: false,
  }
  for (const setting of settings) addSetting(root, setting)
  const plugins = branchAt(root, ['plugins'])
  // Settings of extensions that are not loaded are kept.
  plugins.additionalProperties = false
  plugins.patternProperties = { '\\.': {}, [`^(?!(?:${OWN_PLUGINS})$)[^.]+$`]: { type: 'object' } }
  return root
}

interface Branch extends JsonSchema {
  properties: Record<string, JsonSchema>
}

/** Adds the setting of an extension to a schema of config.json. */
export function addSetting(root: JsonSchema, { path, schema }: SettingSchema): void {
  const keys = path.split('.')
  const leaf = keys.pop() as string
  branchAt(root as Branch, keys).properties[leaf] = schema
}

function branchAt(root: Branch, keys: readonly string[]): Branch {
  let at = root
  for (const [n, key] of keys.entries()) {
    // `plugins.<vendor>` may also contain other extensions of the vendor.
    const isVendor = n === 1 && keys[0] === 'plugins'
    at.properties[key] ??= { type: 'object', properties: {}, additionalProperties: isVendor }
    at = at.properties[key] as Branch
  }
  return at
}
