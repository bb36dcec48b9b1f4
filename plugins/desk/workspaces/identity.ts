import { lstat, mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { parse, stringify } from 'smol-toml'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { iso } from '../../../kernel/plugin.js'
import { isInside, writeWhole } from './files.js'

/** Contents of `<root>/.svc/workspace.toml`, which moves with the folder. */
export interface Identity {
  /** ULID. */
  readonly workspaceId: string
  /** Canonical path of the file, when it was made just now. */
  readonly made?: string
}

/** Where time and chance of a new identity come from. */
export interface IdentitySource {
  now(): number
  /** So many random bytes in hexadecimal. */
  hex(bytes: number): string
}

const FILE = 'workspace.toml'
const SIZE_MAX = 64 * 1024
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * Identity of a workspace folder, made when it has none or a broken one, or when `taken` says that the folder is a copy of
 * another one. Throws when the folder cannot be written or its `.svc` leads out of it.
 */
export async function ensureIdentity(
  root: string,
  source: IdentitySource,
  taken: (workspaceId: string) => boolean | Promise<boolean> = () => false,
): Promise<Identity> {
  const folder = await identityFolder(root)
  const file = path.join(folder, FILE)
  const old = await readIdentity(file)
  if (old && !(await taken(old.workspaceId))) return old
  const made: Identity = { workspaceId: ulid(source.now(), source.hex(10)) }
  const text = stringify({
    workspace_id: made.workspaceId,
    created_at: iso(source.now()),
    realpath_at_creation: root,
  })
  const exists = await lstat(file).then(
    () => true,
    () => false,
  )
  await writeWhole(file, `${text}\n`, { how: exists ? 'replace' : 'create', unique: source.hex(6) })
  // Of two that make it at once the first wins.
  return { ...((await readIdentity(file)) ?? made), made: file }
}

/** The identity in a file, or nothing when there is none that can be used. A link or a pipe in its place is not followed. */
export async function readIdentity(file: string): Promise<Identity | undefined> {
  try {
    const bytes = await readRegularFile(file, { maxBytes: SIZE_MAX, links: 'refuse' })
    const { workspace_id: id } = parse(String(bytes ?? ''))
    return typeof id === 'string' && ULID.test(id) ? { workspaceId: id } : undefined
  } catch {
    return undefined
  }
}

/** A ULID: 48 bits of time and 80 of chance in 26 characters that sort by time. */
export function ulid(now: number, chance: string): string {
  let bits = (BigInt(now) << 80n) | BigInt(`0x${chance}`)
  let text = ''
  for (let at = 0; at < 26; at++) {
    text = CROCKFORD[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}

/** `<root>/.svc`, made when missing. A link there must not lead out of the root: what lies behind is not ours to write. */
async function identityFolder(root: string): Promise<string> {
  const folder = path.join(root, '.svc')
  await mkdir(folder, { recursive: true })
  const real = await realpath(folder)
  if (!isInside(real, root)) throw new Error(`${folder} leads out of the workspace, to ${real}`)
  return real
}
