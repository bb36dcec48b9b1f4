import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonSchema } from '@valibot/to-json-schema'
import { replaceDurably } from '../../kernel/kit/durable-file.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { textOf, withSettings, writeText } from '../setup/settings-file.js'
import { addSetting, type SettingSchema } from './config-schema.js'
import { SETTINGS_CACHE } from './settings-cache.js'

const MAX_BYTES = 16 * 1024 * 1024
/** Beside config.json, which names it. */
export const SCHEMA_FILE = 'config.schema.json'

type Context = Pick<LocalContext, 'io' | 'home'>

/** `config schema`: prints the JSON Schema of config.json, or writes it beside config.json and has that name it. */
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

/** Writes the schema beside config.json, which names it from then on unless it names another: with the settings of the extensions that the daemon of this home has loaded. */
export async function writeConfigSchema(context: Context): Promise<string> {
  const file = join(context.home, SCHEMA_FILE)
  mkdirSync(context.home, { recursive: true, mode: 0o700 })
  const text = await configSchemaText(context)
  if (readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString() !== text)
    await replaceDurably(file, Buffer.from(text), { mode: 0o600 })
  const before = textOf(context.home)
  if (!before.includes('"$schema"')) writeText(context.home, withSettings(before, { $schema: `./${SCHEMA_FILE}` }))
  return file
}

async function configSchemaText(context: Context): Promise<string> {
  const schema = JSON.parse(builtText(context, 'config')) as JsonSchema
  for (const setting of settingsOfExtensions(context.home)) addSetting(schema, setting)
  return `${JSON.stringify(schema, undefined, 2)}\n`
}

/** Written by the daemon; a file that is damaged must not take the rest away. */
function settingsOfExtensions(home: string): readonly SettingSchema[] {
  try {
    const text = readRegularFileSync(join(home, 'cache', SETTINGS_CACHE), { maxBytes: MAX_BYTES })?.toString()
    const found: unknown = text === undefined ? [] : JSON.parse(text)
    return Array.isArray(found) ? found.filter(isSetting) : []
  } catch {
    return []
  }
}

/** Nothing but a setting of an extension, below its own name. */
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

/** Whether the program was built with its schemas: under a loader of sources it is not. */
export const isSchemaBuilt = (context: Context): boolean => existsSync(builtFile(context, 'config'))

function builtText(context: Context, name: string): string {
  const file = builtFile(context, name)
  const text = readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString()
  if (text === undefined) throw new CliFault('schema_not_built', `${file} is missing`, { next: 'npm run build' })
  return text
}
