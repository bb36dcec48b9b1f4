import { knownMigrations } from '../../../../cli/backup/known-migrations.js'
import { systemClock } from '../../../../kernel/plugin.js'
import { restoreBackup } from '../../../../plugins/desk/backup/restore/restore.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'

/** What a held home holds beside its data. */
export const HELD = {
  restored_at: '2030-01-01T00:00:00.000Z',
  backup: 'x.tar',
  backup_created_at: '2030-01-01T00:00:00.000Z',
}

/** Backs a running home up and restores it. @returns the new home, which starts held, with the configuration of the old one */
export async function restoredOf(from: {
  readonly home: string
  request(method: string, url: string, body?: unknown): Promise<{ status: number; body: Reply }>
}): Promise<string> {
  const { status, body } = await from.request('POST', '/api/backups', {})
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
  const known = await knownMigrations()
  const home = await temporaryFolder('restored')
  await restoreBackup({
    ...{ file: body.backup.path, home, opening: { identities: [] }, clock: systemClock() },
    knows: hash => known.has(hash),
  })
  return home
}
