import { join, resolve } from 'node:path'
import { parse } from 'jsonc-parser'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { BackupFolder, BackupKeep } from '../../plugins/desk/backup/api.js'

const CONFIG_BYTES = 16 * 1024 * 1024

/** Backup settings of a home without a running daemon. An unreadable configuration gives the defaults. */
export function configured(home: string): { readonly folder: string; readonly keep: number } {
  let backup: { folder?: unknown; keep?: unknown } = {}
  try {
    const text = readRegularFileSync(join(home, 'config.json'), { maxBytes: CONFIG_BYTES })?.toString() ?? ''
    backup = (parse(text, [], { allowTrailingComma: true }) as { backup?: typeof backup }).backup ?? {}
  } catch {}
  const folder = typeof backup.folder === 'string' && backup.folder !== '' ? backup.folder : BackupFolder.default
  const keep = Number.isInteger(backup.keep) && Number(backup.keep) >= 1 ? Number(backup.keep) : BackupKeep.default
  return { folder: resolve(home, folder), keep }
}
