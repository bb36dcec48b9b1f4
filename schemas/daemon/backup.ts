/** Backups of the home. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

/** `upgrade`: made automatically before the first start of a version with another schema. */
export const BackupKind = v.picklist(['manual', 'upgrade'])
export type BackupKind = v.InferOutput<typeof BackupKind>

/** A backup in a folder of backups. */
export const Backup = v.object({
  /** File name. */
  name: v.string(),
  path: v.string(),
  created_at: Timestamp,
  /** File size. */
  bytes: Integer,
  /** Additional disk usage in its folder: its file, and the chunks that no older backup uses. */
  added_bytes: Integer,
  /** Size of a self-contained copy. */
  whole_bytes: Integer,
  kind: BackupKind,
  encrypted: v.boolean(),
  /** Chunks are missing, so it cannot be restored. */
  incomplete: v.optional(v.literal(true)),
  /** When its content was last verified against its hashes; absent if not since it was made or changed. */
  verified_at: v.optional(Timestamp),
})
export type Backup = v.InferOutput<typeof Backup>

/** GET /api/backups: the newest first. */
export const ListBackupsReply = v.object({
  backups: v.array(Backup),
  /** Folder of the backups. */
  folder: v.string(),
  /** Number of backups kept in this folder; the oldest are removed beyond it. */
  keep: Integer,
})
export type ListBackupsReply = v.InferOutput<typeof ListBackupsReply>

/** POST /api/backups */
export const CreateBackupBody = v.strictObject({
  /** Absolute path of the file or of an existing folder; default: a new file in the folder of `backup.folder`. */
  output: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(4096))),
  /** age recipients (`age1…`), any of whom can decrypt the backup. */
  encrypt_to: v.optional(v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(4096))), v.maxLength(20))),
  /** Encrypts the backup with this passphrase. */
  passphrase: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))),
  /** Include the vault key; without it, secrets are unreadable after a restore on another machine. */
  include_vault_key: v.optional(v.boolean()),
})
export type CreateBackupBody = v.InferOutput<typeof CreateBackupBody>

/** The created backup. */
export const BackupReply = v.object({
  backup: Backup,
  files: Integer,
  /** Files that were left out, with the reason; at most 50. */
  left_out: v.array(v.object({ path: v.string(), why: v.string() })),
  /** Whether the backup contains the vault key. */
  vault_key: v.boolean(),
  /** Older backups removed beyond the number kept. */
  removed: v.array(v.string()),
})
export type BackupReply = v.InferOutput<typeof BackupReply>

/** The backup that a held home was restored from. */
export const HeldHome = v.object({
  restored_at: Timestamp,
  /** Name of the backup file. */
  backup: v.string(),
  /** Creation time of the backup. */
  backup_created_at: Timestamp,
})
export type HeldHome = v.InferOutput<typeof HeldHome>

/** GET and POST /api/backups/hold */
export const HoldReply = v.object({
  held: v.boolean(),
  hold: v.optional(HeldHome),
  /** The command that ends the hold. */
  command: v.optional(v.string()),
})
export type HoldReply = v.InferOutput<typeof HoldReply>
