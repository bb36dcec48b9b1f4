import fs from 'node:fs/promises'
import path from 'node:path'
import { type Actor, Fault, iso } from '../../../kernel/plugin.js'
import type { BackupReply, CreateBackupBody, HoldReply, ListBackupsReply } from '../../../schemas/daemon/backup.js'
import { BackupErrors, BackupFolder, BackupKeep } from './api.js'
import type { K } from './needs.js'

/** Files left out that a reply names. */
const NAMED = 50
/** Times that a backup is begun of a home whose files change. */
const TRIES = 5

/** Backups of this home while its daemon runs, and the hold of a restored one. */
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

  /** One at a time. @throws Fault `backup_busy`, those of `writeBackup` */
  async create(body: CreateBackupBody): Promise<BackupReply> {
    if (this.#making) throw BackupErrors.backup_busy()
    const refusal = await this.kernel.needs.disk.refusal()
    if (refusal) throw refusal
    const making = this.#untilWhole(body)
    this.#making = making
    try {
      return await making
    } finally {
      this.#making = undefined
    }
  }

  /** A file that is written in place while it is read is read again. */
  async #untilWhole(body: CreateBackupBody): Promise<BackupReply> {
    for (let left = TRIES; ; left--) {
      try {
        return await this.#create(body)
      } catch (error) {
        if (left <= 1 || !(error instanceof Fault) || error.code !== BackupErrors.backup_busy.code) throw error
      }
    }
  }

  async #create(body: CreateBackupBody): Promise<BackupReply> {
    const { clock, home, ids, log } = this.kernel
    const [{ liveMaterial, removeStaging }, { writeBackup }, { outputOf }, { homeIdOf }, folders] = await Promise.all([
      import('./make/live.js'),
      import('./make/write-backup.js'),
      import('./make/output.js'),
      import('./make/rows.js'),
      import('./folder.js'),
    ])
    const sealing = { to: body.encrypt_to ?? [], passphrase: body.passphrase }
    const isSealed = sealing.to.length > 0 || sealing.passphrase !== undefined
    const kind = 'manual'
    const folder = this.folder
    const output = await outputOf({
      output: body.output,
      folder,
      now: clock.now(),
      kind,
      isSealed,
      homeId: homeIdOf(this.kernel.db),
    })
    const cache = home.path('cache')
    await removeStaging(cache, text => log.warn(text))
    const staging = path.join(cache, `backup-${ids.hex(6)}`)
    try {
      const withVaultKey = body.include_vault_key === true
      const material = await liveMaterial(this.kernel, { kind, withVaultKey, backups: folder, staging })
      const { bytes, files } = await writeBackup({ material, output, sealing, signal: this.#stopping.signal })
      await folders.noteChecked(output, clock.now())
      const { home_id: homeId, created_at } = material.header
      const removed =
        path.dirname(output) === folder
          ? await folders.prune(folder, { homeId, keep: this.kernel.config.get(BackupKeep), now: clock.now() })
          : []
      return {
        backup: {
          name: path.basename(output),
          path: output,
          created_at: iso(created_at),
          bytes,
          kind,
          encrypted: isSealed,
          verified_at: iso(clock.now()),
        },
        files,
        left_out: material.contents.leftOut.slice(0, NAMED),
        vault_key: material.vaultKey,
        removed,
      }
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
