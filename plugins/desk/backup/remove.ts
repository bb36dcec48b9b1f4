import path from 'node:path'
import type { Clock } from '../../../kernel/plugin.js'
import { BackupErrors } from './api.js'
import { beginsAsBackup, lookAt } from './archive/read.js'
import { type Collected, withStore } from './chunks/collect.js'
import { isNamedAsBackup, remove } from './folder.js'

/**
 * Deletes a backup of a folder and the chunks that no other backup there needs.
 * @throws Fault `backup_not_found`, `backup_not_one`, `backup_busy`
 */
export async function deleteBackup(folder: string, name: string, clock: Clock): Promise<Collected> {
  const file = path.join(folder, name)
  const looked = await lookAt(file)
  const begins = await beginsAsBackup(file).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? BackupErrors.backup_not_found(`there is no backup ${name} in ${folder}`) : error
  })
  if (!looked && !begins && !isNamedAsBackup(name)) throw BackupErrors.backup_not_one(`${file} is not a backup of svc`)
  return withStore(folder, clock, store => remove(folder, [name], store))
}
