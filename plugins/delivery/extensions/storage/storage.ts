import * as v from 'valibot'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { iso, type PluginKernel, type Tx } from '../../../../kernel/plugin.js'
import type { ExtensionStorage } from '../api.js'
import { ExtensionErrors, StateErrors } from '../errors.js'
import { makeDataFolder } from './data-folder.js'
import { StateParams } from './params.js'

/** Bytes of one value as JSON, and of all keys and values of an extension. */
const MAX_VALUE = 64 * 1024
const MAX_ALL = 16 * 1024 * 1024

/** Storage of the code and of the process of an extension, by its key: each link has its own. */
export function storageOf(
  { db, clock, home }: Pick<PluginKernel, 'db' | 'clock' | 'home'>,
  extension: string,
): ExtensionStorage {
  return {
    async get(key) {
      const row = db.get<{ value: string }>('SELECT value FROM extensions_state WHERE extension = ? AND key = ?', [
        ...[extension, valid(StateParams.key, { key }).key],
      ])
      return row && JSON.parse(row.value)
    },

    async put(key, value) {
      const text = asJson(key, value)
      valid(StateParams.put, { key, value: text })
      const length = Buffer.byteLength(text ?? '')
      if (length > MAX_VALUE)
        throw StateErrors.extension_state_too_large(
          `the value of ${key} has ${length} bytes, at most ${MAX_VALUE} are kept`,
        )
      const bytes = length + Buffer.byteLength(key)
      await db.tx(t => {
        const { others } = t.get<{ others: number }>(
          'SELECT ifnull(sum(bytes), 0) AS others FROM extensions_state WHERE extension = ? AND key <> ?',
          [extension, key],
        ) ?? { others: 0 }
        if (others + bytes > MAX_ALL)
          throw StateErrors.extension_state_too_large(
            `${extension} already stores ${others} of at most ${MAX_ALL} bytes; delete some`,
          )
        t.run(
          'INSERT OR REPLACE INTO extensions_state (extension, key, value, bytes, updated_at) VALUES (?, ?, ?, ?, ?)',
          [extension, key, text ?? '', bytes, clock.now()],
        )
      })
    },

    async delete(key) {
      const where = [extension, valid(StateParams.key, { key }).key]
      return db.tx(t => t.run('DELETE FROM extensions_state WHERE extension = ? AND key = ?', where).changes > 0)
    },

    async list(options = {}) {
      const { prefix = '', after = '', limit } = valid(StateParams.list, options)
      const rows = db.all<{ key: string; bytes: number; updated_at: number }>(
        `SELECT key, bytes, updated_at FROM extensions_state
         WHERE extension = ? AND key > ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT +?`,
        [extension, after, [...prefix].length, prefix, limit + 1],
      )
      const page = rows.slice(0, limit)
      return {
        entries: page.map(({ updated_at, ...row }) => ({ ...row, updated_at: iso(updated_at) })),
        has_more: rows.length > limit,
      }
    },

    folder: () => makeDataFolder({ home }, extension),
  }
}

/** Deletes the values of an extension and its links. */
export function forgetState(t: Tx, name: string): void {
  t.run('DELETE FROM extensions_state WHERE extension = ? OR substr(extension, 1, ?) = ?', [
    ...[name, name.length + 1],
    `${name}@`,
  ])
}

/** @throws Fault `extension_state_invalid` */
function valid<S extends v.GenericSchema>(schema: S, params: object): v.InferOutput<S> {
  const { issues, output } = v.safeParse(schema, params)
  if (!issues) return output
  throw ExtensionErrors.extension_state_invalid(`${issueLine(issues[0], 'the value')}`)
}

/** Functions and cycles cannot be stored; undefined for undefined. @throws Fault `extension_state_invalid` */
function asJson(key: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw ExtensionErrors.extension_state_invalid(`the value of ${key} is not valid JSON`, { cause: error })
  }
}
