import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { BackupKind } from '../../../../schemas/daemon/backup.js'
import { LIMITS } from './limits.js'

/** Format of a self-contained backup. */
export const WHOLE_FORMAT = 1
/** Format of a backup whose large files are stored in chunks beside it. */
export const CHUNKED_FORMAT = 2
/** Increases when earlier programs cannot read the new format. */
const NEWEST_FORMAT = CHUNKED_FORMAT
/** Name of the first entry. It comes first so that listing backups does not read whole archives. */
export const HEADER_NAME = 'svc-backup.json'
/** Name of the last entry. */
export const MANIFEST_NAME = 'svc-manifest.json'
/** Prefix of the files of the home in the archive. */
export const HOME_PREFIX = 'home/'

const text = v.pipe(v.string(), v.maxLength(LIMITS.path))
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

/** Metadata at the beginning of a backup. */
export const Header = v.object({
  format: v.picklist([WHOLE_FORMAT, CHUNKED_FORMAT]),
  kind: BackupKind,
  /** Epoch milliseconds. */
  created_at: count,
  product_version: text,
  home_id: text,
  /** SHA-256 of the schema: owner, id and hash of each migration. */
  schema: text,
})
export type Header = v.InferOutput<typeof Header>

export const ManifestFile = v.object({
  path: text,
  size: count,
  mode: count,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
})
export type ManifestFile = v.InferOutput<typeof ManifestFile>

const Manifest = v.object({
  ...Header.entries,
  /** Whether the backup includes the key of the vault. */
  vault_key: v.boolean(),
  /** Migrations of the database: owner, id, SHA-256 of its text. */
  migrations: v.array(v.tuple([text, text, text])),
  /** Rows by table. */
  tables: v.record(text, count),
  folders: v.array(text),
  files: v.array(ManifestFile),
})
export type Manifest = v.InferOutput<typeof Manifest>

const Signed = v.object({ manifest: v.unknown(), sha256: v.string() })

/** Bytes of the last entry: the manifest and its hash. */
export function manifestBytes(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify({ manifest, sha256: sha256(JSON.stringify(manifest)) })}\n`)
}

/** The manifest, or why it cannot be used. */
export type ReadManifest = { readonly manifest: Manifest } | { readonly problem: string; readonly isNewer?: true }

export function readManifest(bytes: Uint8Array): ReadManifest {
  const found = parsed(bytes)
  const signed = v.safeParse(Signed, found)
  if (!signed.success) return { problem: 'its manifest cannot be read' }
  const { manifest, sha256: sum } = signed.output
  if (sha256(JSON.stringify(manifest)) !== sum) return { problem: 'its manifest was changed' }
  const newer = newerThan(manifest)
  if (newer) return newer
  const read = v.safeParse(Manifest, manifest)
  return read.success ? { manifest: read.output } : { problem: 'its manifest cannot be read' }
}

/** Reads the first entry of an archive, or says why it is not usable. */
export function readHeader(
  bytes: Uint8Array,
): { readonly header: Header } | { readonly problem: string; readonly isNewer?: true } {
  const found = parsed(bytes)
  const newer = newerThan(found)
  if (newer) return newer
  const read = v.safeParse(Header, found)
  return read.success ? { header: read.output } : { problem: 'its first entry cannot be read' }
}

function newerThan(found: unknown): { problem: string; isNewer: true } | undefined {
  const { format } = (found ?? {}) as { format?: unknown }
  if (typeof format !== 'number' || format <= NEWEST_FORMAT) return undefined
  return { problem: `it has format ${format}, this version reads ${NEWEST_FORMAT}`, isNewer: true }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
}

export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** SHA-256 of a schema. */
export const schemaDigest = (migrations: readonly (readonly [string, string, string])[]): string =>
  sha256(
    [...migrations]
      .map(entry => `${entry.join(':')}\n`)
      .sort()
      .join(''),
  )
