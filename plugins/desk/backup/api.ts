/** `svc/plugins/backup`: backups of the home. */
import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, type Setting } from '../../../kernel/plugin.js'

/** Default folder of backups; a relative path is resolved against the home. */
export const BackupFolder: Setting<string> = {
  path: 'backup.folder',
  section: 'general',
  schema: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
  default: 'backups',
  apply: 'live',
}

/** Backups of each kind that are kept for this home in this folder. After a new backup, the oldest beyond the limit are removed. */
export const BackupKeep: Setting<number> = {
  path: 'backup.keep',
  section: 'general',
  schema: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
  default: 10,
  apply: 'live',
}

const again = command('backup create')

export const BackupErrors = defineErrors({
  backup_busy: {
    status: 409,
    message: 'a backup is being made; wait until it has ended',
    next: command('backup list'),
  },
  backup_output_exists: { status: 409, message: 'a file with this name already exists', next: command('backup list') },
  backup_output_invalid: {
    status: 422,
    message: 'the backup cannot be written there',
    next: command('backup create', '--help'),
  },
  backup_recipient_invalid: {
    status: 422,
    message: 'a recipient is not an age recipient (age1…)',
    next: command('backup create', '--help'),
  },
  backup_failed: { status: 500, message: 'the backup was not made', next: again },
  backup_not_found: { status: 404, message: 'there is no such backup', next: command('backup list') },
  backup_unreadable: { status: 422, message: 'the backup cannot be read', next: command('backup list') },
  backup_not_one: { status: 422, message: 'this is not a backup', next: command('backup list') },
  backup_damaged: { status: 422, message: 'the backup is damaged', next: command('backup list') },
  backup_incomplete: {
    status: 422,
    message: 'the backup needs chunks that are not next to it',
    next: command('backup export', placeholder('file'), '--to', placeholder('file')),
  },
  backup_encrypted: {
    status: 422,
    message: 'the backup is encrypted',
    next: command('backup verify', placeholder('file'), '--identity', placeholder('file')),
  },
  backup_key_wrong: {
    status: 422,
    message: 'the passphrase or identity does not open the backup',
    next: command('backup verify', '--help'),
  },
  backup_newer: {
    status: 422,
    message: 'the backup was made by a later version',
    next: 'install the version of svc that made it, or a later one',
  },
  home_not_fresh: {
    status: 409,
    message: 'a backup can be restored only into a new or empty home',
    next: command('backup restore', '--help'),
  },
  restore_failed: { status: 500, message: 'the backup was not restored', next: command('backup restore', '--help') },
  home_copied: { status: 409, message: 'this home is a copy of another one', next: again },
  restore_unfinished: {
    status: 409,
    message: 'the restore of this home was interrupted',
    next: command('backup restore', placeholder('file'), '--home', placeholder('folder')),
  },
  upgrade_failed: { status: 500, message: 'the upgrade failed', next: command('backup list') },
})
