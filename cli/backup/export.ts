import { basename, dirname, resolve } from 'node:path'
import { systemClock } from '../../kernel/plugin.js'
import { deleteBackup } from '../../plugins/desk/backup/remove.js'
import { exportBackup } from '../../plugins/desk/backup/restore/export.js'
import type { ListBackupsReply } from '../../schemas/daemon/backup.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { bytesText } from '../show/cells.js'
import { configured } from './configured.js'
import { asFault, passphraseOf, withDaemon } from './create.js'
import { fileOf } from './restore.js'

/** `backup export` */
export async function exportOne(context: LocalContext): Promise<undefined> {
  const { options, lists, cwd, out, progress, signal } = context
  const file = fileOf(context)
  if (options.to === undefined) {
    const next = 'svc backup export <file> --to <file>'
    throw new CliFault('usage', 'give the output file: --to', { exit: exitCodes.usage, next })
  }
  const output = resolve(cwd, String(options.to))
  const sealing = { to: lists['encrypt-to'] ?? [], ...(await passphraseOf(context)) }
  const bytes = await asFault(() =>
    progress.during('exporting the backup', () => exportBackup({ file, output, sealing, signal })),
  )
  if (out.json) out.value({ status: 'exported', file, path: output, bytes })
  else {
    out.id(output)
    out.line(`exported ${basename(file)} to ${output} (${bytesText(bytes)}), a self-contained file`)
  }
  return undefined
}

/** `backup delete` */
export async function deleteOne(context: LocalContext): Promise<undefined> {
  const { args, out, home } = context
  const argument = String(args.file)
  const folder = argument.includes('/') ? dirname(resolve(context.cwd, argument)) : await folderOf(context, home)
  const name = basename(argument)
  const { freed, unreadable } = await asFault(() => deleteBackup(folder, name, systemClock()))
  if (out.json) out.value({ status: 'deleted', name, folder, freed_bytes: freed, ...(unreadable && { unreadable }) })
  else {
    out.line(`deleted ${name}; freed ${bytesText(freed)}`)
    if (unreadable !== undefined)
      out.line(`no chunk was removed: ${unreadable} cannot be read, so it is unknown which chunks it uses`)
  }
  return undefined
}

const folderOf = (context: LocalContext, home: string): Promise<string> =>
  withDaemon(
    async () => ((await context.client.request('GET', '/api/backups')) as ListBackupsReply).folder,
    async () => configured(home).folder,
  )
