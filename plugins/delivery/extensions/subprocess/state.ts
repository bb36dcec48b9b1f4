import * as v from 'valibot'
import { iso, type PluginKernel, type Tx } from '../../../../kernel/plugin.js'
import { checkedParams } from './host-call.js'
import { StateErrors } from './state-errors.js'

/** Bytes of one value as JSON, and of all keys and values of an extension. */
const MAX_VALUE = 64 * 1024
const MAX_ALL = 16 * 1024 * 1024
const MAX_PAGE = 1000

const key = v.pipe(v.string(), v.minLength(1), v.maxBytes(512))

/** Parameters of `state/get` and `state/delete`. */
export const KeyParams = v.strictObject({ key })
/** Parameters of `state/put`. */
export const PutParams = v.strictObject({
  key,
  value: v.pipe(
    v.unknown(),
    v.check(value => value !== undefined, 'a value is expected'),
    v.description('any JSON, at most 64 KiB'),
  ),
})
/** Parameters of `state/list`. */
export const ListParams = v.strictObject({
  prefix: v.optional(v.pipe(v.string(), v.maxBytes(512), v.description('only keys that begin with it'))),
  after: v.optional(
    v.pipe(v.string(), v.maxBytes(512), v.description('only keys behind this one, in ascending order')),
  ),
  limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE)), 200),
})

interface Row extends Record<string, string | number> {
  readonly key: string
  readonly bytes: number
  readonly updated_at: number
}

/** Key-value storage of extensions; each link has its own. */
export class ExtensionState {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'clock'>) {}

  async get(extension: string, params: object): Promise<unknown> {
    const input = checkedParams(KeyParams, params)
    const row = this.kernel.db.get<{ value: string }>(
      'SELECT value FROM extensions_state WHERE extension = ? AND key = ?',
      [extension, input.key],
    )
    return { key: input.key, found: row !== undefined, value: row ? JSON.parse(row.value) : null }
  }

  /** @throws Fault `extension_state_too_large` */
  async put(extension: string, params: object): Promise<unknown> {
    const { key, value } = checkedParams(PutParams, params)
    const text = JSON.stringify(value)
    const length = Buffer.byteLength(text)
    if (length > MAX_VALUE)
      throw StateErrors.extension_state_too_large(
        `the value of ${key} has ${length} bytes, at most ${MAX_VALUE} are kept`,
      )
    const bytes = length + Buffer.byteLength(key)
    await this.kernel.db.tx(t => {
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
        [...[extension, key, text], bytes, this.kernel.clock.now()],
      )
    })
    return { key, bytes }
  }

  async delete(extension: string, params: object): Promise<unknown> {
    const input = checkedParams(KeyParams, params)
    const where = [extension, input.key]
    const deleted = await this.kernel.db.tx(t => {
      const found = t.get('SELECT 1 FROM extensions_state WHERE extension = ? AND key = ?', where)
      t.run('DELETE FROM extensions_state WHERE extension = ? AND key = ?', where)
      return found !== undefined
    })
    return { deleted }
  }

  async list(extension: string, params: object): Promise<unknown> {
    const { prefix = '', after = '', limit } = checkedParams(ListParams, params)
    const rows = this.kernel.db.all<Row>(
      `SELECT key, bytes, updated_at FROM extensions_state
       WHERE extension = ? AND key > ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT +?`,
      [extension, after, [...prefix].length, prefix, limit + 1],
    )
    const page = rows.slice(0, limit)
    return {
      entries: page.map(({ updated_at, ...row }) => ({ ...row, updated_at: iso(updated_at) })),
      has_more: rows.length > limit,
    }
  }
}

/** Deletes the values of an extension and its links. */
export function forgetState(t: Tx, name: string): void {
  t.run('DELETE FROM extensions_state WHERE extension = ? OR substr(extension, 1, ?) = ?', [
    ...[name, name.length + 1],
    `${name}@`,
  ])
}
