import { lstat, mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { parse, stringify } from 'smol-toml'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { iso } from '../../../kernel/plugin.js'
import { isInside, writeWhole } from './files.js'

/** Contents of `<root>/.svc/workspace.toml`. The file moves with the folder, so the identity does too. */
export interface Identity {
  /** ULID. */
  readonly workspaceId: string
  /** Canonical path of the file, if it was just created. */
  readonly made?: string
}

/** Sources of time and randomness for a new identity. */
export interface IdentitySource {
  now(): number
  /** Random bytes in hexadecimal. */
  hex(bytes: number): string
}

const FILE = 'workspace.toml'
const SIZE_MAX = 64 * 1024
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * The identity of a workspace folder. A new one is created if it is missing or invalid, or if `taken` reports that the folder is a
 * copy. Throws if the folder is not writable or its `.svc` leads out of it.
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
  // If two processes create it at once, the first one wins.
  return { ...((await readIdentity(file)) ?? made), made: file }
}

/** Reads the identity in a file; undefined if it is missing or invalid. Links and pipes are not followed. */
export async function readIdentity(file: string): Promise<Identity | undefined> {
  try {
    const bytes = await readRegularFile(file, { maxBytes: SIZE_MAX, links: 'refuse' })
    const { workspace_id: id } = parse(String(bytes ?? ''))
    return typeof id === 'string' && ULID.test(id) ? { workspaceId: id } : undefined
  } catch {
    return undefined
  }
}

/** A ULID: 48 bits of time and 80 random bits, in 26 characters that sort by time. */
export function ulid(now: number, chance: string): string {
  let bits = (BigInt(now) << 80n) | BigInt(`0x${chance}`)
  let text = ''
  for (let at = 0; at < 26; at++) {
    text = CROCKFORD[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}

/** `<root>/.svc`, created if missing. A link must not lead out of the root, because its target is not ours to write. */
async function identityFolder(root: string): Promise<string> {
  const folder = path.join(root, '.svc')
  await mkdir(folder, { recursive: true })
  const real = await realpath(folder)
  if (!isInside(real, root)) throw new Error(`${folder} leads out of the workspace, to ${real}`)
  return real
}
