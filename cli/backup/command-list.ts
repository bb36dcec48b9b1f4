import type { CommandOption } from '../../kernel/contract/surface.js'
import type { LocalCommand } from '../local.js'

const opens: readonly CommandOption[] = [
  { name: 'identity', type: 'text', summary: 'file with an identity of age (AGE-SECRET-KEY-1…) that opens the backup' },
  { name: 'passphrase-file', type: 'text', summary: 'file with the passphrase of the backup; - is standard input' },
]

const encrypts: readonly CommandOption[] = [
  { name: 'encrypt-to', type: 'list', summary: 'recipient of age (age1…) that can read the backup' },
  { name: 'passphrase-file', type: 'text', summary: 'encrypt with the passphrase in a file; - is standard input' },
]

/** Backup commands, which create, list and check backups with or without a daemon. */
export const backupCommands: readonly LocalCommand[] = [
  {
    kind: 'local',
    path: 'backup create',
    summary: 'Back up the home; its daemon may run meanwhile',
    args: [],
    options: [
      { name: 'to', type: 'text', summary: 'a new file, or a folder; default: the folder of backup.folder' },
      ...encrypts,
      { name: 'include-vault-key', type: 'boolean', summary: 'include the vault key, which decrypts all secrets' },
    ],
    load: () => import('./create.js').then(module => module.createBackup),
  },
  {
    kind: 'local',
    path: 'backup list',
    summary: 'List the backups in the folder of backups',
    args: [],
    options: [],
    load: () => import('./create.js').then(module => module.listBackups),
  },
  {
    kind: 'local',
    path: 'backup verify',
    summary: 'Check every file and the database of a backup',
    args: [{ name: 'file', summary: 'a backup, or its name in the folder of backups' }],
    options: opens,
    load: () => import('./restore.js').then(module => module.verify),
  },
  {
    kind: 'local',
    path: 'backup restore',
    summary: 'Restore a backup into a new home, which starts held',
    args: [{ name: 'file', summary: 'a backup, or its name in the folder of backups' }],
    options: [
      { name: 'home', type: 'text', summary: 'folder that becomes the home; it is missing or empty' },
      ...opens,
    ],
    load: () => import('./restore.js').then(module => module.restore),
  },
  {
    kind: 'local',
    path: 'backup export',
    summary: 'Write a backup into a single self-contained file',
    args: [{ name: 'file', summary: 'a backup, or its name in the folder of backups' }],
    options: [{ name: 'to', type: 'text', summary: 'a new file' }, ...encrypts],
    load: () => import('./export.js').then(module => module.exportOne),
  },
  {
    kind: 'local',
    path: 'backup delete',
    summary: 'Delete a backup and the chunks that only it uses',
    args: [{ name: 'file', summary: 'a backup, or its name in the folder of backups' }],
    options: [],
    load: () => import('./export.js').then(module => module.deleteOne),
  },
]
