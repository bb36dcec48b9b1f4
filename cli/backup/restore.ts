import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { iso, systemClock } from '../../kernel/plugin.js'
import type { Opening } from '../../plugins/desk/backup/archive/seal.js'
import { noteChecked } from '../../plugins/desk/backup/folder.js'
import { restoreBackup } from '../../plugins/desk/backup/restore/restore.js'
import { type Verified, verifyBackup } from '../../plugins/desk/backup/restore/verify.js'
import { loadMigrations } from '../daemon/load-daemon.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { configured } from './configured.js'
import { asFault, passphraseOf } from './create.js'

/** Maximum number of secrets named in a message. */
const NAMED = 20

/** `backup verify` */
export async function verify(context: LocalContext): Promise<undefined> {
  const { out, progress, signal } = context
  const file = fileOf(context)
  const opening = await openingOf(context)
  const knows = await knowsOf(context)
  const { manifest, lockedSecrets } = await asFault(() =>
    progress.during('checking the backup', () => verifyBackup({ file, opening, knows, signal })),
  )
  await noteChecked(file, systemClock().now())
  const rows = Object.values(manifest.tables).reduce((sum, count) => sum + count, 0)
  const tables = Object.keys(manifest.tables).length
  const { files, kind, product_version, vault_key } = manifest
  if (out.json) {
    const { home_id, schema } = manifest
    const created_at = iso(manifest.created_at)
    out.value({
      ...{ status: 'ok', file, kind, created_at, product_version, home_id, schema },
      ...{ files: files.length, tables, rows, vault_key, locked_secrets: lockedSecrets },
    })
  } else {
    out.line(
      `ok: ${files.length} files, ${tables} tables with ${rows} rows, made ${iso(manifest.created_at)} by version ${product_version}`,
    )
    tellSecrets(context, lockedSecrets)
  }
  return undefined
}

/** `backup restore` */
export async function restore(context: LocalContext): Promise<undefined> {
  const { progress, signal, options, cwd } = context
  if (options.home === undefined) {
    const next = 'svc backup restore <file> --home <folder>'
    throw new CliFault('usage', 'name the folder that becomes the home: --home', { exit: exitCodes.usage, next })
  }
  const file = fileOf(context)
  const home = resolve(cwd, String(options.home))
  const opening = await openingOf(context)
  const knows = await knowsOf(context)
  const verified = await asFault(() =>
    progress.during('restoring the backup', () =>
      restoreBackup({ file, home, opening, knows, clock: systemClock(), signal }),
    ),
  )
  tellRestored(context, home, verified)
  return undefined
}

function tellRestored(context: LocalContext, home: string, { manifest, lockedSecrets }: Verified): void {
  const { out } = context
  const created_at = iso(manifest.created_at)
  if (out.json) {
    out.value({
      status: 'restored',
      home,
      held: true,
      created_at,
      files: manifest.files.length,
      locked_secrets: lockedSecrets,
    })
    return
  }
  out.line(`restored ${manifest.files.length} files to ${home}, as of ${created_at}`)
  tellSecrets(context, lockedSecrets)
  out.line('The home is held: no job, session, task, bridge or network connection runs in it.')
  out.line(`  start it:           SVC_HOME=${home} svc daemon start`)
  out.line(`  let work begin:     SVC_HOME=${home} svc backup confirm`)
}

function tellSecrets({ out }: LocalContext, refs: readonly string[]): void {
  if (refs.length === 0) return
  out.line(
    out.color(
      'yellow',
      `${refs.length} ${refs.length === 1 ? 'secret' : 'secrets'} cannot be read without the vault key, which is not in the backup:`,
    ),
  )
  for (const ref of refs.slice(0, NAMED)) out.line(`  ${ref}`)
  if (refs.length > NAMED) out.line(`  and ${refs.length - NAMED} more`)
  out.line('  put vault.key into the new home (mode 0600), or store their values again: svc vault put <ref>')
}

/** A path, or a name in the backup folder. */
export function fileOf({ args, cwd, home }: LocalContext): string {
  const argument = String(args.file)
  const file = resolve(cwd, argument)
  if (existsSync(file) || argument.includes('/')) return file
  const named = join(configured(home).folder, argument)
  return existsSync(named) ? named : file
}

async function openingOf(context: LocalContext): Promise<Opening> {
  const { identity } = context.options
  const text = identity === undefined ? '' : await context.readFile(String(identity))
  const identities = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
  return { identities, ...(await passphraseOf(context)) }
}

async function knowsOf({ io, home }: LocalContext): Promise<(hash: string) => boolean> {
  const { knownMigrations } = await loadMigrations(io.root, home)
  const known = await knownMigrations()
  return hash => known.has(hash)
}
