import { mkdirSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findNodeAtLocation, getNodeValue, type ParseError, parseTree } from 'jsonc-parser'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { Fault } from '../../kernel/plugin.js'
import { editJson } from '../../plugins/platform/configuration/json-file.js'
import { CliFault, exitCodes } from '../fault.js'

/** The daemon refuses a larger file. */
const mostBytes = 16 * 1024 * 1024
/** The settings that `svc init` writes. */
const decided = ['defaults.provider', 'permissions.mode', 'providers.svc.base_url'] as const

/** The settings in config.json that `svc init` writes, as far as they are set. Throws for invalid JSON. */
export async function readSettings(home: string): Promise<Record<string, string>> {
  const tree = parsed(join(home, 'config.json'), textOf(home))
  const values = decided.flatMap(name => {
    const node = tree && findNodeAtLocation(tree, name.split('.'))
    return node ? [[name, String(getNodeValue(node))] as const] : []
  })
  return Object.fromEntries(values)
}

/** Writes settings to config.json; comments and other settings stay. Returns the path of the file. */
export async function writeSettings(home: string, settings: Readonly<Record<string, string>>): Promise<string> {
  if (Object.keys(settings).length > 0) writeText(home, withSettings(textOf(home), settings))
  return join(home, 'config.json')
}

/**
 * The text with these settings; an undefined one is removed.
 * @throws CliFault `config_file_invalid`, with line and column, when the text is not a JSON object
 */
export function withSettings(before: string, settings: Readonly<Record<string, unknown>>): string {
  const changes = Object.entries(settings).map(([name, value]) => ({ keys: name.split('.'), value }))
  return asInvalid(() => editJson(before, 'config.json', changes))
}

/** Runs an edit of config.json. @throws CliFault with the code, text and next step of a fault */
export function asInvalid<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new CliFault(error.code, error.message, {
      exit: exitCodes.invalid,
      ...(error.next !== undefined && { next: error.next }),
    })
  }
}

/** Replaces config.json by a text. */
export function writeText(home: string, text: string): void {
  const file = join(home, 'config.json')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const target = targetOf(file)
  const temporary = `${target}.${process.pid}.tmp`
  writeFileSync(temporary, text.endsWith('\n') ? text : `${text}\n`, { flag: 'wx', mode: 0o600 })
  renameSync(temporary, target)
}

/** The text of config.json; empty without a file. */
export function textOf(home: string): string {
  return readRegularFileSync(join(home, 'config.json'), { maxBytes: mostBytes })?.toString() ?? ''
}

function parsed(file: string, text: string) {
  if (text.trim() === '') return undefined
  const errors: ParseError[] = []
  const tree = parseTree(text, errors, { allowTrailingComma: true })
  if (errors.length > 0 || tree?.type !== 'object') {
    throw new CliFault('config_invalid', `${file} is not valid JSON, so nothing was changed`, {
      exit: exitCodes.invalid,
      next: 'svc doctor',
    })
  }
  return tree
}

/** The target of a symlink, so that the link itself is kept. */
function targetOf(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}
