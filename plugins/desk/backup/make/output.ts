import fs from 'node:fs/promises'
import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import type { BackupKind } from '../../../../schemas/daemon/backup.js'
import { BackupErrors } from '../api.js'
import { nameOf } from '../folder.js'

export interface OutputOptions {
  /** Absolute path of a file, or of an existing folder. */
  readonly output?: string | undefined
  /** Folder used if there is no `output`; created if missing. */
  readonly folder: string
  readonly now: number
  readonly kind: BackupKind
  readonly isSealed: boolean
  readonly homeId: string
}

/** Path of the file to be written. @throws Fault `backup_output_exists`, `backup_output_invalid` */
export async function outputOf({ output, folder, now, kind, isSealed, homeId }: OutputOptions): Promise<string> {
  const name = nameOf(homeId, now, kind, isSealed)
  if (output === undefined) {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 }).catch(error => {
      throw BackupErrors.backup_output_invalid(`the folder ${folder} cannot be made: ${error.message}`, {
        next: command('config set', 'backup.folder', placeholder('folder')),
      })
    })
    return path.join(folder, name)
  }
  if (!path.isAbsolute(output))
    throw BackupErrors.backup_output_invalid(`the output has to be an absolute path: ${output}`)
  const found = await fs.stat(output).catch(() => undefined)
  if (found?.isDirectory()) return path.join(output, name)
  if (found || output.endsWith(path.sep)) {
    if (!found) throw BackupErrors.backup_output_invalid(`the folder ${output} does not exist; create it first`)
    throw BackupErrors.backup_output_exists(`${output} already exists; give another file, or a folder`)
  }
  return output
}

/** Folder of the backups of a home. */
export const folderOf = (home: string, setting: string): string => path.resolve(home, setting)
