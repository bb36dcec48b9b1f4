import fs from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { jsonFile } from '../../../kernel/kit/json-file.js'
import { systemDisk } from '../../../kernel/platform.js'
import { iso } from '../../../kernel/plugin.js'
import type { Backup, BackupKind } from '../../../schemas/daemon/backup.js'
import { sha256 } from './archive/manifest.js'
import { lookAt } from './archive/read.js'
import { type Collected, collect } from './chunks/collect.js'
import { ChunkStore } from './chunks/store.js'
import { ofPartial } from './make/write-backup.js'

/** File beside the backups that records when each was checked. */
const CHECKS_FILE = 'checks.json'
const Check = v.object({ bytes: v.number(), modified: v.number(), at: v.string() })
type Check = v.InferOutput<typeof Check>
const Checked = v.record(v.string(), Check)
const CHECKS_BYTES = 1024 * 1024
/** Largest number of backups that are read in one folder. */
const MOST = 5000
/** A partial backup of a killed process is removed after a day. */
const ABANDONED_MS = 24 * 60 * 60_000
/** `svc-<time>-<home>[-upgrade].tar[.age]`: an encrypted backup reveals no more than its name. */
const NAME = /^svc-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-([0-9a-f]{8})(-upgrade)?\.tar(\.age)?$/

/** Name of a backup of a home. */
export function nameOf(homeId: string, at: number, kind: BackupKind, isSealed: boolean): string {
  const time = iso(at).replaceAll(/[:.]/g, '')
  return `svc-${time}-${shortOf(homeId)}${kind === 'upgrade' ? '-upgrade' : ''}.tar${isSealed ? '.age' : ''}`
}

/** A short hash of the home id, which distinguishes the backups of several homes in one folder. */
const shortOf = (homeId: string): string => sha256(homeId).slice(0, 8)

/** Whether a file has the form of a default backup name. */
export const isNamedAsBackup = (name: string): boolean => NAME.test(name)

/** A backup in a folder, with the hash of its home from its name. */
export interface Found extends Backup {
  readonly home: string
}

/** The backups of a folder, newest first; other files are skipped. A missing folder has none. */
export async function backupsIn(folder: string): Promise<Found[]> {
  const names = (await fs.readdir(folder).catch(() => [] as string[]))
    .filter(name => NAME.test(name))
    .sort()
    .slice(-MOST)
  const checks: Readonly<Record<string, Check>> = await checksOf(folder)
    .read()
    .catch(() => ({}))
  const found: Found[] = []
  const there = await ChunkStore.forFolder(folder).names()
  const knownChunks = new Set<string>()
  // Oldest first: a chunk counts for the oldest backup that needs it.
  for (const name of names) {
    const backup = await backupAt(path.join(folder, name), checks[name], { there, knownChunks }).catch(() => undefined)
    if (backup) found.push(backup)
  }
  return found.sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
}

/** Chunks that exist, and chunks that older backups need. */
interface Chunks {
  readonly there: ReadonlySet<string>
  readonly knownChunks: Set<string>
}

async function backupAt(
  file: string,
  check: Check | undefined,
  { there, knownChunks }: Chunks,
): Promise<Found | undefined> {
  const stat = await fs.stat(file)
  const head = stat.isFile() ? await lookAt(file) : undefined
  if (!head) return undefined
  const said = saidBy(path.basename(file))
  const isChecked = check?.bytes === stat.size && check.modified === Math.trunc(stat.mtimeMs)
  let added = stat.size
  let isIncomplete = false
  const { chunks, chunked } = head.encrypted ? { chunks: [], chunked: 0 } : head
  for (const [name, bytes] of chunks) {
    if (!there.has(name)) isIncomplete = true
    else if (!knownChunks.has(name)) added += bytes
    knownChunks.add(name)
  }
  return {
    name: path.basename(file),
    path: file,
    created_at: said.created_at,
    bytes: stat.size,
    added_bytes: added,
    whole_bytes: stat.size + chunked,
    kind: said.kind,
    encrypted: head.encrypted,
    ...(isIncomplete && { incomplete: true }),
    ...(isChecked ? { verified_at: check.at } : {}),
    home: said.home,
  }
}

function saidBy(name: string): { created_at: string; kind: BackupKind; home: string } {
  const [, day, hour, minute, second, ms, home = '', upgrade] = NAME.exec(name) ?? []
  const kind = upgrade === undefined ? 'manual' : 'upgrade'
  return { created_at: `${day}T${hour}:${minute}:${second}.${ms}Z`, kind, home }
}

const checksOf = (folder: string) => jsonFile(path.join(folder, CHECKS_FILE), Checked, {}, { maxBytes: CHECKS_BYTES })

/** Records that a backup was checked now. If the record cannot be written, the backup counts as unchecked. */
export async function noteChecked(file: string, at: number): Promise<void> {
  const folder = path.dirname(file)
  if (!NAME.test(path.basename(file))) return
  try {
    const { size, mtimeMs } = await fs.stat(file)
    const names = new Set(await fs.readdir(folder))
    const known = Object.entries(
      await checksOf(folder)
        .read()
        .catch(() => ({})),
    ).filter(([name]) => names.has(name))
    const own = { bytes: size, modified: Math.trunc(mtimeMs), at: iso(at) }
    await checksOf(folder).write({ ...Object.fromEntries(known), [path.basename(file)]: own })
  } catch {}
}

export interface KeepOptions {
  readonly homeId: string
  readonly keep: number
  readonly now: number
  /** The store of the folder; the caller holds its lock. */
  readonly store: ChunkStore
}

/**
 * Removes the oldest backups of a home beyond `keep` of each kind, the chunks that only they needed, and files of killed
 * processes. Returns the names of the removed backups.
 */
export async function prune(folder: string, { homeId, keep, now, store }: KeepOptions): Promise<string[]> {
  const all = await backupsIn(folder)
  const old = (['manual', 'upgrade'] as const).flatMap(kind =>
    all.filter(backup => backup.kind === kind && backup.home === shortOf(homeId)).slice(keep),
  )
  await removeAbandoned(folder, now)
  const names = old.map(({ name }) => name)
  await remove(folder, names, store)
  return names
}

/** Begin of the names of copies of the database that lie beside a backup. */
export const STAGED = '.svc-backup-'

/** Removes partial backups, and copies of the database, of killed processes from a folder. */
export async function removeAbandoned(folder: string, now: number): Promise<void> {
  const names = await fs.readdir(folder).catch(() => [] as string[])
  for (const name of names.filter(name => name.startsWith(STAGED) || isNamedAsBackup(ofPartial(name) ?? ''))) {
    const file = path.join(folder, name)
    const { mtimeMs } = await fs.stat(file).catch(() => ({ mtimeMs: now }))
    if (now - mtimeMs > ABANDONED_MS) await fs.rm(file, { recursive: true, force: true })
  }
}

/** Removes backups and the chunks that no other backup needs. The caller holds the lock of the store. */
export async function remove(folder: string, names: readonly string[], store: ChunkStore): Promise<Collected> {
  for (const name of names) await fs.rm(path.join(folder, name), { force: true })
  await systemDisk().fsyncDir(folder)
  return collect(folder, store, isNamedAsBackup)
}
