import fs from 'node:fs/promises'
import path from 'node:path'
import { type Actor, Fault } from '../../../kernel/plugin.js'
import type { BackupReply, CreateBackupBody, HoldReply, ListBackupsReply } from '../../../schemas/daemon/backup.js'
import { BackupErrors, BackupFolder, BackupKeep } from './api.js'
import type { K } from './needs.js'

/** Attempts at a backup while files of the home change. */
const TRIES = 5

/** Backups of this home while its daemon runs, and the hold of a restored home. */
export class BackupService {
  readonly #stopping = new AbortController()
  #making: Promise<unknown> | undefined

  constructor(private readonly kernel: K) {
    kernel.scope.defer('backup', async () => {
      this.#stopping.abort()
      await this.#making?.catch(() => {})
    })
  }

  get folder(): string {
    return path.resolve(this.kernel.home.root, this.kernel.config.get(BackupFolder))
  }

  async list(): Promise<ListBackupsReply> {
    const { backupsIn } = await import('./folder.js')
    const found = await backupsIn(this.folder)
    const backups = found.map(({ home: _, ...backup }) => backup)
    return { backups, folder: this.folder, keep: this.kernel.config.get(BackupKeep) }
  }

  /** Makes a backup; one at a time. @throws Fault `backup_busy`, those of `writeBackup` */
  async create(body: CreateBackupBody): Promise<BackupReply> {
    if (this.#making) throw BackupErrors.backup_busy()
    const making = this.#untilWhole(body)
    this.#making = making
    try {
      return await making
    } finally {
      this.#making = undefined
    }
  }

  /** Tries again if a file that is written in place changed while it was read. */
  async #untilWhole(body: CreateBackupBody): Promise<BackupReply> {
    const refusal = await this.kernel.needs.disk.refusal()
    // A backup to another disk is wanted most when this one is full. In the home it needs only links to files.
    if (refusal && (await deviceOf(body.output ?? this.folder)) === (await deviceOf(this.kernel.home.root)))
      throw refusal
    for (let left = TRIES; ; left--) {
      try {
        return await this.#create(body)
      } catch (error) {
        if (left <= 1 || !(error instanceof Fault) || error.code !== BackupErrors.backup_busy.code) throw error
      }
    }
  }

  async #create(body: CreateBackupBody): Promise<BackupReply> {
    const { clock, config, home, ids, log } = this.kernel
    const [{ liveMaterial, removeStaging }, { putBackup }] = await Promise.all([
      import('./make/live.js'),
      import('./make/into-folder.js'),
    ])
    const folder = this.folder
    const cache = home.path('cache')
    await removeStaging(cache, text => log.warn(text))
    const staging = path.join(cache, `backup-${ids.hex(6)}`)
    try {
      const withVaultKey = body.include_vault_key === true
      const kind = 'manual'
      const material = await liveMaterial(this.kernel, { kind, withVaultKey, backups: folder, staging })
      return await putBackup(material, {
        ...{ output: body.output, folder, keep: config.get(BackupKeep), kind, clock },
        sealing: { to: body.encrypt_to ?? [], passphrase: body.passphrase },
        signal: this.#stopping.signal,
      })
    } finally {
      await fs.rm(staging, { recursive: true, force: true })
    }
  }

  hold(): HoldReply {
    const { daemon } = this.kernel.needs
    const hold = daemon.hold()
    if (!daemon.held) return { held: false }
    return { held: true, ...(hold && { hold }), command: 'svc backup confirm' }
  }

  async confirm(actor: Actor): Promise<HoldReply> {
    await this.kernel.needs.daemon.confirm(actor)
    return { held: false }
  }
}

/** The file system on which a path is or would be created. */
async function deviceOf(target: string): Promise<number> {
  const found = await fs.stat(target).catch(() => undefined)
  if (found) return found.dev
  const parent = path.dirname(target)
  return parent === target ? -1 : deviceOf(parent)
}
