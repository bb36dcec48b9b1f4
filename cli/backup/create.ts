import { resolve } from 'node:path'
import { Fault, systemClock } from '../../kernel/plugin.js'
import { version } from '../../kernel/version.js'
import { backupsIn } from '../../plugins/desk/backup/folder.js'
import { putBackup } from '../../plugins/desk/backup/make/into-folder.js'
import { withOfflineMaterial } from '../../plugins/desk/backup/make/offline.js'
import type { BackupReply, CreateBackupBody, ListBackupsReply } from '../../schemas/daemon/backup.js'
import { CliFault, exitCodes, exitOfStatus } from '../fault.js'
import type { LocalContext } from '../local.js'
import { bytesText } from '../show/cells.js'
import { configured } from './configured.js'

/** `backup create`: by the daemon, or without one under the lock of the home. */
export async function createBackup(context: LocalContext): Promise<undefined> {
  const { options, lists, cwd, out, progress } = context
  const body: CreateBackupBody = {
    ...(options.to === undefined ? {} : { output: outputPath(String(options.to), cwd) }),
    ...(lists['encrypt-to']?.length ? { encrypt_to: [...lists['encrypt-to']] } : {}),
    ...(options['include-vault-key'] === true ? { include_vault_key: true } : {}),
    ...(await passphraseOf(context)),
  }
  const reply = await progress.during('backing up', () => make(context, body))
  if (out.json) out.value(reply)
  else show(context, reply)
  return undefined
}

/** `backup list` */
export async function listBackups(context: LocalContext): Promise<undefined> {
  const { out } = context
  const reply = await withDaemon(
    async () => (await context.client.request('GET', '/api/backups')) as ListBackupsReply,
    async () => {
      const { folder, keep } = configured(context.home)
      const found = await backupsIn(folder)
      return { backups: found.map(({ home: _, ...backup }) => backup), folder, keep }
    },
  )
  if (out.json) out.value(reply)
  else {
    const rows = reply.backups.map(backup => ({
      ...backup,
      // The usual kind is omitted, so that a line fits a terminal.
      kind: backup.kind === 'manual' ? '' : backup.kind,
      secured: backup.encrypted ? 'yes' : '',
      verified: backup.verified_at ?? '',
      state: backup.incomplete ? 'incomplete: chunks of it are missing' : '',
    }))
    out.table(
      rows,
      [
        { header: 'Name', path: 'name' },
        { header: 'Created', path: 'created_at', as: 'ago' },
        { header: 'Size', path: 'whole_bytes', as: 'bytes' },
        { header: 'Adds', path: 'added_bytes', as: 'bytes' },
        { header: 'Status', path: 'state', below: true },
        { header: 'Kind', path: 'kind', below: true },
        { header: 'Encrypted', path: 'secured', below: true },
        { header: 'Verified', path: 'verified', as: 'ago', below: true },
      ],
      'no backups; make one: svc backup create',
    )
  }
  return undefined
}

async function make(context: LocalContext, body: CreateBackupBody): Promise<BackupReply> {
  return withDaemon(
    async () => (await context.client.request('POST', '/api/backups', body, { waits: true })) as BackupReply,
    () => makeOffline(context, body),
  )
}

/** Creates a backup of a home whose daemon does not run. */
async function makeOffline({ home, signal }: LocalContext, body: CreateBackupBody): Promise<BackupReply> {
  const clock = systemClock()
  const { folder, keep } = configured(home)
  const sealing = { to: body.encrypt_to ?? [], passphrase: body.passphrase }
  const withVaultKey = body.include_vault_key === true
  const kind = 'manual'
  const { output } = body
  return asFault(() =>
    withOfflineMaterial({ home, kind, version, withVaultKey, backups: folder, output, clock }, material =>
      putBackup(material, { output, folder, keep, kind, sealing, signal, clock }),
    ),
  )
}

/** Runs `online` with the daemon, or `offline` when no daemon runs. */
export async function withDaemon<T>(online: () => Promise<T>, offline: () => Promise<T>): Promise<T> {
  try {
    return await online()
  } catch (error) {
    if (!(error instanceof CliFault) || error.code !== 'no_daemon') throw error
  }
  return offline()
}

/** Gives errors of local work the same exit codes as errors of the daemon. */
export async function asFault<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message, next, hint } = error as Fault & { hint?: string }
    if (typeof code !== 'string' || !/^[a-z_]+$/.test(code)) throw error
    const exit = error instanceof Fault ? exitOfStatus(error.status) : exitCodes.failed
    throw new CliFault(code, message, { exit, next: next ?? hint, cause: error })
  }
}

/** The absolute path; a trailing slash, which marks a folder, is kept. */
const outputPath = (path: string, cwd: string): string => `${resolve(cwd, path)}${path.endsWith('/') ? '/' : ''}`

/** The passphrase in the file named by an option. @throws CliFault `usage` */
export async function passphraseOf({ options, readFile }: LocalContext): Promise<{ passphrase?: string }> {
  const file = options['passphrase-file']
  if (file === undefined) return {}
  const passphrase = (await readFile(String(file))).replace(/\r?\n$/, '')
  if (passphrase === '')
    throw new CliFault('usage', 'the file of --passphrase-file is empty', { exit: exitCodes.usage })
  return { passphrase }
}

function show({ out, home }: LocalContext, { backup, files, left_out, vault_key, removed }: BackupReply): void {
  out.id(backup.path)
  const added = backup.added_bytes < backup.whole_bytes ? `, of which ${bytesText(backup.added_bytes)} are new` : ''
  out.line(`backed up ${files} files to ${backup.path} (${bytesText(backup.whole_bytes)}${added})`)
  for (const { path, why } of left_out) if (path !== 'vault.key') out.line(`left out: ${path}: ${why}`)
  if (!vault_key && left_out.some(({ path }) => path === 'vault.key'))
    out.line(
      out.color('dim', 'the vault key is not included: keep a copy of vault.key elsewhere, or use --include-vault-key'),
    )
  if (removed.length > 0) out.line(out.color('dim', `removed ${removed.length} older: ${removed.join(', ')}`))
  void home
}
