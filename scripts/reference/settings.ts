import { readFileSync } from 'node:fs'
import path from 'node:path'
import type * as v from 'valibot'
import { KernelSettings } from '../../kernel/platform.js'
import type { Setting } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { durationText } from '../../schemas/duration.js'
import { configurationText } from './configuration-text.js'
import { jsonOf, membersOf, typeOf } from './json-schema.js'
import { byName, code, page, table } from './markdown.js'
import { settingTexts } from './settings-text.js'

export interface SettingRow {
  readonly path: string
  readonly type: string
  readonly fallback: string
  readonly apply: Setting['apply']
  readonly owner: string
  readonly description: string
}

/** Every path of `config.json`; a table setting is replaced by its members. */
export const settingRows = (): SettingRow[] => {
  const kernel = Object.values(KernelSettings).map(setting => ({ owner: 'kernel', setting: setting as Setting }))
  const plugins = inTree.flatMap(({ name, surface }) =>
    (surface.settings ?? []).map(setting => ({ owner: name, setting: setting as Setting })),
  )
  return [...kernel, ...plugins]
    .flatMap(({ owner, setting }) => rowsOf(setting).map(row => ({ ...row, owner, apply: setting.apply })))
    .sort(byName(({ path: at }) => at))
}

function rowsOf({ path: at, schema, default: value }: Setting): Omit<SettingRow, 'owner' | 'apply'>[] {
  const json = jsonOf(schema as v.GenericSchema)
  const text = (key: string, own = '') => own || (settingTexts[key] ?? '')
  const members = membersOf(json, `${at}.`).filter(({ path: key }) => !/[[<]/.test(key))
  // A table that is a single value, such as a rate limit, is one row.
  if (members.length === 0 || settingTexts[at] !== undefined)
    return [
      { path: at, type: typeOf(json), fallback: shown(value, typeOf(json)), description: text(at, json.description) },
    ]
  return members.map(({ path: key, type, description }) => {
    const member = (value as Record<string, unknown>)[key.slice(at.length + 1)]
    return { path: key, type, fallback: shown(member, type), description: text(key, description) }
  })
}

/** A duration is stored in milliseconds but written as text. */
function shown(value: unknown, type: string): string {
  if (typeof value === 'number' && type.startsWith('text'))
    return code(JSON.stringify(value === 0 ? '0' : durationText(value)))
  return code(JSON.stringify(value))
}

const WHEN: Readonly<Record<Setting['apply'], string>> = {
  live: 'at once',
  'restart-required': 'at the next start',
  'session-rebind': 'for new sessions',
}

/** docs/configuration.md: how to change the configuration, and all keys. */
export function configurationPage(): string {
  const example = readFileSync(path.join(import.meta.dirname, '../../examples/config.jsonc'), 'utf8').trimEnd()
  const rows = settingRows().map(({ path: at, type, fallback, apply, owner, description }) => [
    code(at),
    type.startsWith('text') && /^`"(0|\d+(ms|s|m|h))"`$/.test(fallback) ? 'duration' : type,
    fallback,
    WHEN[apply],
    owner,
    description,
  ])
  return page(
    'Configuration',
    configurationText.replace('@EXAMPLE@', example),
    '## Keys',
    'Keys of the owner `settings` are stored and validated; no subsystem reads them yet.',
    table(['key', 'type', 'default', 'a change takes effect', 'owner', 'meaning'], rows),
  )
}
