import type { Dirent } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { LIMITS } from '../archive/limits.js'

/** A file of the home as it was at one moment. */
export interface HomeFile {
  /** Relative to the home, with slashes. */
  readonly path: string
  readonly mode: number
  readonly size: number
  /**
   * The content: bytes, or the first `size` bytes of a file. A file with a stamp (its modification time) must not be written
   * later.
   */
  readonly from: { readonly bytes: Uint8Array } | { readonly file: string; readonly stamp?: bigint }
}

/** The files and folders of a backup, and the paths left out. */
export interface Contents {
  readonly files: HomeFile[]
  readonly folders: string[]
  readonly leftOut: { readonly path: string; readonly why: string }[]
}

export interface ContentsOptions {
  readonly withVaultKey: boolean
  /** Paths below the home that hold backups. */
  readonly backups: string
  /**
   * Keeps the bytes of a file that may be replaced or removed later, and returns their path. Absent if no other process writes to
   * the home.
   */
  readonly keep?: (file: string) => Promise<string>
}

/** Top-level names that are never backed up: they are recreated, or belong to one process or machine. */
const NEVER = new Set([
  ...['svc.db', 'svc.db-wal', 'svc.db-mark', 'svc.db-journal', 'daemon.sock', 'daemon.lock', 'daemon.json'],
  ...['home.json', 'held.json', 'restoring.json', 'stop-asked.json', 'watchdog.json', 'suspect.json', 'restarts'],
  ...['cache', 'logs', 'run', 'support-bundles', 'backups'],
  // The next start creates a new token: one token must not open two homes.
  'operator.token',
])
const VAULT_KEYS = new Set(['vault.key', 'vault.key.next'])
const VARIABLE = 'SVC_VAULT_KEY'
const ENVIRONMENT_BYTES = 1024 * 1024
/** Files up to this size are read into memory at once: some of them are written in place. */
const SMALL_BYTES = 16 * 1024
/** Largest total of small files held in memory. */
const HELD_BYTES = 64 * 1024 * 1024
const AT_ONCE = 8
/** Journals are append-only: their first bytes never change. */
const JOURNAL_MARK = 'journal.json'
const TEMPORARY = /^\..*\.tmp$|^\.daemon\.lock\.|^\.trash-/

/** Lists all files of a home; links are not followed. */
export async function contentsOf(root: string, options: ContentsOptions): Promise<Contents> {
  const found: Contents = { files: [], folders: [], leftOut: [] }
  const walk = new Walk(root, options, found)
  const folders = ['']
  let running = 0
  await new Promise<void>((resolve, reject) => {
    const next = (): void => {
      if (folders.length === 0 && running === 0) resolve()
      while (running < AT_ONCE && folders.length > 0) {
        running++
        walk
          .folder(folders.pop() as string)
          .then(below => {
            running--
            for (const folder of below) folders.push(folder)
            next()
          })
          .catch(reject)
      }
    }
    next()
  })
  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)
  found.files.sort(byPath)
  found.leftOut.sort(byPath)
  found.folders.sort()
  return found
}

class Walk {
  #held = 0

  constructor(
    readonly root: string,
    readonly options: ContentsOptions,
    readonly found: Contents,
  ) {}

  /** Records the files of a folder; returns its subfolders. */
  async folder(relative: string): Promise<string[]> {
    if (relative.split('/').length > LIMITS.depth) {
      this.leaveOut(relative, 'it is too deep')
      return []
    }
    const whole = path.join(this.root, relative)
    let entries = await this.entries(relative, whole)
    // The mark of a journal states the minimum size of its files, so it is read before they are.
    const mark = entries.find(({ name }) => name === JOURNAL_MARK)
    if (mark) {
      await this.file(`${relative}/${mark.name}`)
      entries = (await this.entries(relative, whole)).filter(({ name }) => name !== JOURNAL_MARK)
    }
    const below: string[] = []
    for (const entry of entries) {
      const at = relative === '' ? entry.name : `${relative}/${entry.name}`
      if (TEMPORARY.test(entry.name) || (relative === '' && NEVER.has(entry.name))) continue
      if (path.join(this.root, at) === this.options.backups) continue
      if (entry.isDirectory()) {
        this.found.folders.push(at)
        below.push(at)
      } else if (entry.isFile()) await this.file(at)
      else if (entry.isSymbolicLink()) this.leaveOut(at, 'it is a symbolic link')
      else if (!entry.isSocket()) this.leaveOut(at, 'it is not a regular file')
    }
    return below
  }

  async entries(relative: string, whole: string): Promise<Dirent[]> {
    try {
      return await fs.readdir(whole, { withFileTypes: true })
    } catch (error) {
      if (isGone(error)) return []
      this.leaveOut(relative, messageOf(error))
      return []
    }
  }

  async file(relative: string): Promise<void> {
    const file = path.join(this.root, relative)
    if (VAULT_KEYS.has(relative) && !this.options.withVaultKey) {
      this.leaveOut(relative, 'the vault key is included only with --include-vault-key')
      return
    }
    try {
      if (relative === '.env' && !this.options.withVaultKey && (await names(file, VARIABLE))) {
        this.leaveOut(relative, `it contains ${VARIABLE}, which is included only with --include-vault-key`)
        return
      }
      const { mode: bits, size: length, mtimeNs } = await fs.lstat(file, { bigint: true })
      const [mode, size] = [Number(bits), Number(length)]
      const common = { path: relative, mode: mode & 0o777 }
      const isSmall = size <= SMALL_BYTES && this.#held + size <= HELD_BYTES && !relative.endsWith('.log')
      if (isSmall) {
        const bytes = await readRegularFile(file, { maxBytes: 2 * SMALL_BYTES, links: 'refuse' })
        if (bytes === undefined) return
        this.#held += bytes.length
        this.found.files.push({ ...common, size: bytes.length, from: { bytes } })
      } else {
        const kept = (await this.options.keep?.(file)) ?? file
        // A journal is append-only.
        const stamp = relative.endsWith('.log') ? {} : { stamp: mtimeNs }
        this.found.files.push({ ...common, size, from: { file: kept, ...stamp } })
      }
    } catch (error) {
      if (isGone(error)) return
      this.leaveOut(relative, error instanceof Fault ? error.message : messageOf(error))
    }
  }

  leaveOut(at: string, why: string): void {
    this.found.leftOut.push({ path: at, why })
  }
}

async function names(file: string, variable: string): Promise<boolean> {
  const text = await readRegularFile(file, { maxBytes: ENVIRONMENT_BYTES, links: 'refuse' })
  return text?.includes(variable) === true
}

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
