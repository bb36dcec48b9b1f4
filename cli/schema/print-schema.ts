import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonSchema } from '@valibot/to-json-schema'
import { replaceDurably } from '../../kernel/kit/durable-file.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { editText, textOf, withSettings } from '../setup/settings-file.js'
import { addSetting, type SettingSchema } from './config-schema.js'
import { SETTINGS_CACHE } from './settings-cache.js'

const MAX_BYTES = 16 * 1024 * 1024
/** File name of the schema, next to config.json. */
export const SCHEMA_FILE = 'config.schema.json'

type Context = Pick<LocalContext, 'io' | 'home'>

/** `config schema`: prints the JSON Schema of config.json, or writes it next to config.json and refers to it there. */
export async function printConfigSchema(context: LocalContext): Promise<undefined> {
  const { home, options, out } = context
  if (options.write !== true) return print(context, await configSchemaText(context))
  const file = await writeConfigSchema(context)
  if (out.json) out.value({ file, config: join(home, 'config.json') })
  else out.line(`wrote ${file}; config.json names it`)
  return undefined
}

/** `extension schema` and `bundle schema`. */
export const printSchema = (name: 'extension' | 'bundle') => async (context: LocalContext) =>
  print(context, builtText(context, name))

function print({ io }: Context, text: string): undefined {
  io.stdout.write(text)
  return undefined
}

/**
 * Writes the schema next to config.json, which then refers to it unless it refers to another one. It includes the settings of
 * extensions loaded by the daemon of this home.
 */
export async function writeConfigSchema(context: Context): Promise<string> {
  const file = join(context.home, SCHEMA_FILE)
  mkdirSync(context.home, { recursive: true, mode: 0o700 })
  const text = await configSchemaText(context)
  if (readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString() !== text)
    await replaceDurably(file, Buffer.from(text), { mode: 0o600 })
  const before = textOf(context.home)
  if (!before.includes('"$schema"')) editText(context.home, text => withSettings(text, { $schema: `./${SCHEMA_FILE}` }))
  return file
}

async function configSchemaText(context: Context): Promise<string> {
  const schema = JSON.parse(builtText(context, 'config')) as JsonSchema
  for (const setting of settingsOfExtensions(context.home)) addSetting(schema, setting)
  return `${JSON.stringify(schema, undefined, 2)}\n`
}

/** Settings cached by the daemon; a damaged file must not affect the rest of the schema. */
function settingsOfExtensions(home: string): readonly SettingSchema[] {
  try {
    const text = readRegularFileSync(join(home, 'cache', SETTINGS_CACHE), { maxBytes: MAX_BYTES })?.toString()
    const found: unknown = text === undefined ? [] : JSON.parse(text)
    return Array.isArray(found) ? found.filter(isSetting) : []
  } catch {
    return []
  }
}

/** Whether the value is a setting of an extension, below the name of that extension. */
function isSetting(found: unknown): found is SettingSchema {
  const { path, schema } = Object(found)
  return (
    typeof path === 'string' &&
    /^plugins\.[^.]+\.[^.]+\.[^.]/.test(path) &&
    typeof schema === 'object' &&
    schema !== null
  )
}

const builtFile = ({ io }: Context, name: string) => join(io.root, 'json-schema', `${name}.schema.json`)

/** Whether the build contains schemas; a run from source has none. */
export const isSchemaBuilt = (context: Context): boolean => existsSync(builtFile(context, 'config'))

function builtText(context: Context, name: string): string {
  const file = builtFile(context, name)
  const text = readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString()
  if (text === undefined) throw new CliFault('schema_not_built', `${file} is missing`, { next: 'npm run build' })
  return text
}
