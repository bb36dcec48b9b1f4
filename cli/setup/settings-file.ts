import { lstatSync, mkdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findNodeAtLocation, getNodeValue, type ParseError, parseTree } from 'jsonc-parser'
import { replaceDurablySync } from '../../kernel/kit/durable-file.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { Fault } from '../../kernel/plugin.js'
import { editJson } from '../../plugins/platform/configuration/json-file.js'
import { CliFault, exitCodes } from '../fault.js'

/** The daemon refuses a larger file. */
const mostBytes = 16 * 1024 * 1024
/** Milliseconds after which a lock is a leftover, and between two attempts to take it. */
const LEFT_MS = 5000
const WAIT_MS = 10
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
  if (Object.keys(settings).length > 0) editText(home, before => withSettings(before, settings))
  return join(home, 'config.json')
}

/** Changes the text of config.json; a change by another command in the meantime is kept. */
export function editText(home: string, change: (before: string) => string): void {
  for (let before = textOf(home); !writeText(home, change(before), before); before = textOf(home));
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

/**
 * Replaces config.json by a text, durably; the permissions of the file stay. Returns false, and writes nothing, when the file does not
 * have the text `before`: another command has changed it.
 * @throws the system's error
 */
export function writeText(home: string, text: string, before: string): boolean {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const target = targetOf(join(home, 'config.json'))
  const lock = `${target}.lock`
  takeLock(lock)
  try {
    if (textOf(home) !== before) return false
    const mode = (statSync(target, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777
    replaceDurablySync(target, Buffer.from(text.endsWith('\n') ? text : `${text}\n`), { mode })
    return true
  } finally {
    rmSync(lock, { force: true })
  }
}

/** Creates the file that excludes other writers. One that a killed command left is removed. */
function takeLock(lock: string): void {
  try {
    writeFileSync(lock, '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const { mtimeMs = 0 } = lstatSync(lock, { throwIfNoEntry: false }) ?? {}
    // The clock may have been set back since.
    if (Math.abs(Date.now() - mtimeMs) > LEFT_MS) rmSync(lock, { force: true })
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS)
    takeLock(lock)
  }
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
