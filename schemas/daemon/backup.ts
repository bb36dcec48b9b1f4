/** Backups of the home. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

/** `upgrade`: made by the daemon before the first start of a version with another schema. */
export const BackupKind = v.picklist(['manual', 'upgrade'])
export type BackupKind = v.InferOutput<typeof BackupKind>

/** A backup in a folder of backups. */
export const Backup = v.object({
  /** Name of its file. */
  name: v.string(),
  path: v.string(),
  created_at: Timestamp,
  /** Size of its file. */
  bytes: Integer,
  /** What it takes beyond older backups of its folder: its file, and the chunks that none of those needs. */
  added_bytes: Integer,
  /** What a copy of it takes that needs no chunks. */
  whole_bytes: Integer,
  kind: BackupKind,
  encrypted: v.boolean(),
  /** Chunks that it needs are missing: it cannot be restored. */
  incomplete: v.optional(v.literal(true)),
  /** When its content was last checked against its hashes; absent: not since it was made or changed. */
  verified_at: v.optional(Timestamp),
})
export type Backup = v.InferOutput<typeof Backup>

/** GET /api/backups: the newest first. */
export const ListBackupsReply = v.object({
  backups: v.array(Backup),
  /** Where they are. */
  folder: v.string(),
  /** Made in this folder beyond this number, the oldest are removed. */
  keep: Integer,
})
export type ListBackupsReply = v.InferOutput<typeof ListBackupsReply>

/** POST /api/backups */
export const CreateBackupBody = v.strictObject({
  /** Absolute path of the file, or of a folder that is there; default: a new file in the folder of `backup.folder`. */
  output: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(4096))),
  /** Recipients of age (`age1…`), any of whom can read the backup. */
  encrypt_to: v.optional(v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(4096))), v.maxLength(20))),
  /** Encrypts the backup with this passphrase. */
  passphrase: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))),
  /** Puts the key of the vault into the backup; without it secrets cannot be read after a restore on another machine. */
  include_vault_key: v.optional(v.boolean()),
})
export type CreateBackupBody = v.InferOutput<typeof CreateBackupBody>

/** What was made. */
export const BackupReply = v.object({
  backup: Backup,
  files: Integer,
  /** Files of the home that are not in it, and why; at most 50 are named. */
  left_out: v.array(v.object({ path: v.string(), why: v.string() })),
  /** Whether the key of the vault is in it. */
  vault_key: v.boolean(),
  /** Backups that were removed since there are more than are kept. */
  removed: v.array(v.string()),
})
export type BackupReply = v.InferOutput<typeof BackupReply>

/** Why a restored home waits. */
export const HeldHome = v.object({
  restored_at: Timestamp,
  /** Name of the file that it was restored from. */
  backup: v.string(),
  /** When that was made. */
  backup_created_at: Timestamp,
})
export type HeldHome = v.InferOutput<typeof HeldHome>

/** GET and POST /api/backups/hold */
export const HoldReply = v.object({
  held: v.boolean(),
  hold: v.optional(HeldHome),
  /** Ends the hold. */
  command: v.optional(v.string()),
})
export type HoldReply = v.InferOutput<typeof HoldReply>
