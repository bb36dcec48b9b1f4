import { type BigIntStats, lstatSync, statSync } from 'node:fs'
import { lstat, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { AgentDefinition } from '../api.js'
import { DefinitionError, type DefinitionLocation, MAX_DEFINITION_BYTES } from './definition.js'
import { parseDefinition } from './definition-file.js'
import { AGENT_NAME } from './frontmatter.js'

/** A folder with one folder per agent. Links are followed inside `root`. */
export interface AgentFolder extends Omit<DefinitionLocation, 'path'> {
  readonly root: string
  readonly folder: string
  /** Whether requests may write there. */
  readonly writable: boolean
  /** Digests of the accepted definitions, by name; absent: every file is accepted. */
  readonly digests?: ReadonlyMap<string, string>
}

/** A definition file or record with its definition or error. */
export type Found =
  | { readonly ok: true; readonly name: string; readonly path: string; readonly definition: AgentDefinition }
  | { readonly ok: false; readonly name: string; readonly path: string; readonly error: DefinitionError }

/** A result with the state of its file. */
export interface Reading {
  readonly found: Found
  /** Empty: not cacheable. */
  readonly stamp: string
}

/** Resolution of file times in milliseconds: a change within it may not alter them. */
const TICK_MS = 100

export const definitionFile = (folder: string, name: string) => path.join(folder, name, 'AGENT.md')

/**
 * The definition of that name; `before` if its file is unchanged, undefined if there is no file. A file with an invalid
 * agent name is reported as an error, because a person wrote it.
 * @param now epoch milliseconds
 */
export async function readDefinition(
  where: AgentFolder,
  name: string,
  before: Reading | undefined,
  now: number,
): Promise<Reading | undefined> {
  const file = definitionFile(where.folder, name)
  let stamp = ''
  try {
    stamp = await stampOf(file, now, isNear(where))
    if (stamp !== '' && stamp === before?.stamp) return before
    const [real, root] = await Promise.all([realpath(file), realpath(where.root)])
    if (!real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) {
      throw new DefinitionError('outside_root', `it is a link that leads out of ${root}`)
    }
    if (!AGENT_NAME.test(name)) {
      throw new DefinitionError('name', 'the name of its folder may contain only a-z, 0-9, _ and -')
    }
    const { origin, source, workspaceId, extension } = where
    const location = {
      ...{ origin, source, path: file },
      ...(workspaceId === undefined ? {} : { workspaceId }),
      ...(extension === undefined ? {} : { extension }),
    }
    const definition = parseDefinition(name, await readDefinitionFile(real), location)
    return { stamp, found: { ok: true, name, path: file, definition } }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const isAbsent = code === 'ENOENT' || code === 'ENOTDIR'
    if (isAbsent && !(isNear(where) ? isLinkNow(file) : await isLink(file))) return undefined
    const wrong = isAbsent
      ? new DefinitionError('unreadable', 'it is a link to a missing file')
      : error instanceof DefinitionError
        ? error
        : new DefinitionError('unreadable', messageOf(error))
    // Not cacheable: an unreadable file can become readable through a change of its parent folder.
    return { stamp: wrong.kind === 'unreadable' ? '' : stamp, found: { ok: false, name, path: file, error: wrong } }
  }
}

/** Whether a folder is in the home or was installed with the daemon, and thus on no network that might not answer. */
export const isNear = ({ source }: AgentFolder) => source === 'home' || source === 'builtin'

const isLinkNow = (file: string) => lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false

/** A broken link still exists. */
const isLink = (file: string) =>
  lstat(file).then(
    found => found.isSymbolicLink(),
    () => false,
  )

/**
 * Identifies a version of a file or folder by the inode behind links and by the change time, which cannot be set. Empty
 * while it is so new that a further change might not show.
 * @param isLocal whether the file is on a local disk, where a synchronous call takes less time than a trip through the thread pool
 */
export async function stampOf(file: string, now: number, isLocal = false): Promise<string> {
  return isLocal ? stampNow(file, now) : stampIn(await stat(file, { bigint: true }), now)
}

/** As {@link stampOf}, for a file on a local disk. */
export const stampNow = (file: string, now: number): string => stampIn(statSync(file, { bigint: true }), now)

function stampIn({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats, now: number): string {
  return now - Number(ctimeMs) > TICK_MS ? `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}` : ''
}

/**
 * Reads a definition or sidecar file. The path is resolved: a link that then appears in its place is refused.
 * @throws DefinitionError `unreadable`, `too_large`; `ENOENT` when there is none
 */
export async function readDefinitionFile(real: string): Promise<Uint8Array> {
  const bytes = await readRegularFile(real, { maxBytes: MAX_DEFINITION_BYTES, links: 'refuse' }).catch(error => {
    throw new DefinitionError(error.code === 'file_too_large' ? 'too_large' : 'unreadable', messageOf(error))
  })
  if (bytes) return bytes
  throw Object.assign(new Error(`${real} no longer exists`), { code: 'ENOENT' })
}
