import { lstatSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { parseSecretRef, resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { type Clock, messageOf } from '../../../../kernel/plugin.js'
import { isInside, type Workspace } from '../../../desk/workspaces/api.js'
import { readJson } from '../../../platform/configuration/api.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import { references } from '../servers/own-secrets.js'
import type { Declaration } from './declaration.js'
import { type ForeignLocation, type ForeignServers, foreignServers, type Variable } from './foreign.js'
import { positionsIn } from './json-positions.js'

const MOST_BYTES = 1024 * 1024
const MOST_KEPT = 256

/** Members of an `mcp.json` that can contain the servers. */
export const IN_SIDECAR = ['mcpServers', 'servers'] as const
/** Member of a workspace's `config.json` with the servers. */
export const IN_OVERLAY = ['mcp_servers'] as const

/** A file with servers, and the access to its variables. */
export interface ServerFile extends Pick<ForeignLocation, 'where' | 'holders' | 'root' | 'isWorkspace' | 'isStrict'> {
  readonly file: string
  /** Folder that the file must not lead out of. */
  readonly inside: string
  /**
   * Only for a file of a workspace: the vault reference of a variable. The daemon's environment is not available to a
   * file from a repository; a file of the home can use it, like references `env:NAME`.
   */
  readonly ref?: (server: string, variable: string) => string
}

/**
 * Reads the servers of a file; undefined if it does not exist. @throws Fault `mcp_file_invalid` if it is not a list of
 * servers
 */
export async function readServerFile(
  kernel: K,
  { file, inside, ref, ...location }: ServerFile,
): Promise<ForeignServers | undefined> {
  try {
    const [real, root] = await Promise.all([realpath(file).catch(unlessAbsent), realpath(inside)])
    if (real === undefined) return undefined
    if (!isInside(real, root)) throw new Error(`it leads out of ${inside}`)
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' })
    const text = bytes?.toString() ?? ''
    const document = readJson(text, path.basename(file))
    const variable = ref ? (...of: [string, string]) => ({ ref: ref(...of) }) : await variablesIn(text, kernel)
    return foreignServers(document, { ...location, variable, at: positionsIn(text) })
  } catch (error) {
    throw McpErrors.mcp_file_invalid(`${file} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

/** Variables of one file; further ones are not resolved. */
const MOST_VARIABLES = 256

/** Values of variables named in a file of the home, from the daemon's environment. */
async function variablesIn(text: string, kernel: K): Promise<ForeignLocation['variable']> {
  const names = new Set([...text.matchAll(/\$\{(?:env:)?([A-Za-z_]\w{0,255})(?=\}|:-)/g)].map(([, name = '']) => name))
  const found = new Map<string, Variable>()
  for (const name of [...names].slice(0, MOST_VARIABLES)) {
    const ref = `env:${name}`
    const known = await resolveSecret(kernel, ref, name).then(
      value => ({ ref, value }),
      error => ({
        ref,
        missing: `${messageOf(error)}; add it to .env of the home and run: ${command('daemon restart')}`,
      }),
    )
    found.set(name, known)
  }
  return (_server, name) =>
    found.get(name) ?? { ref: `env:${name}`, missing: `the first ${MOST_VARIABLES} variables of a file are looked up` }
}

/**
 * Refuses references to the daemon's environment and to foreign secrets in a file from a repository.
 * @throws Fault `mcp_secret_forbidden` for a reference outside the workspace's secrets
 */
export function checkReferences(where: string, declaration: Declaration, workspace: Workspace): void {
  if (references(declaration).every(reference => isOf(workspace, reference))) return
  throw McpErrors.mcp_secret_forbidden(
    `${where}: the server ${declaration.name} may name only secrets vault:mcp/ws/${workspace.id}/…`,
  )
}

type FilePlace = Pick<ServerFile, 'file' | 'isWorkspace'>

/** Resolution of file times in milliseconds: a change within it may not alter them. */
const TICK_MS = 1000

/** Cached content of unchanged files: every tool call reads all sources. */
export class KeptFiles {
  readonly #kept = new Map<string, { readonly sign: string; readonly content: unknown }>()

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /**
   * Content of a file, read by one of the functions above, always the same one per file. @throws Fault
   * `mcp_file_invalid`
   */
  async read<T>(at: FilePlace, how: () => Promise<T>): Promise<T> {
    const { file } = at
    const sign = await this.#sign(at)
    const known = this.#kept.get(file)
    if (known && sign !== '' && known.sign === sign) return known.content as T
    this.#kept.delete(file)
    const content = await how()
    if (sign !== '' && sign === (await this.#sign(at))) {
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
      this.#kept.set(file, { sign, content })
    }
    return content
  }

  /**
   * Signature of a regular or missing file; empty if it cannot distinguish contents. Synchronous for the home, which is on a local
   * disk: the call takes less time than a trip through the thread pool. A workspace may be on a slow network file system.
   */
  async #sign({ file, isWorkspace }: FilePlace): Promise<string> {
    try {
      const inHome = { bigint: true, throwIfNoEntry: false } as const
      const found = isWorkspace ? await lstat(file, { bigint: true }) : lstatSync(file, inHome)
      if (!found) return 'none'
      const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = found
      const isOld = this.clock.now() - Number(ctimeMs) > TICK_MS
      return isOld && found.isFile() ? [dev, ino, size, mtimeNs, ctimeNs].join(':') : ''
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : ''
    }
  }
}

/** A missing file is not an error; a circular link is. */
function unlessAbsent(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
}

function isOf({ id }: Workspace, reference: string): boolean {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && rest?.startsWith(`mcp/ws/${id}/`) === true
}
