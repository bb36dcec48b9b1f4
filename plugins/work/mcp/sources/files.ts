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
import { type ForeignPlace, type ForeignServers, foreignServers, type Variable } from './foreign.js'
import { placesIn } from './places.js'

const MOST_BYTES = 1024 * 1024
const MOST_KEPT = 256

/** Members of an `mcp.json` that hold its servers. */
export const IN_SIDECAR = ['mcpServers', 'servers'] as const
/** The part of a workspace's `config.json` that is about servers. */
export const IN_OVERLAY = ['mcp_servers'] as const

/** A file with servers, and who may have its variables. */
export interface ServerFile extends Pick<ForeignPlace, 'where' | 'holders' | 'root' | 'isWorkspace' | 'isStrict'> {
  readonly file: string
  /** Folder that the file must not lead out of. */
  readonly inside: string
  /**
   * Of a file of a workspace, where the vault has a variable of a server: the environment of the daemon is not for a file that came with
   * a repository. A file of the home has the variables of the daemon, as references `env:NAME` have them.
   */
  readonly ref?: (server: string, variable: string) => string
}

/** Servers of a file; undefined where there is none. @throws Fault `mcp_file_invalid` for a file that is no list of servers */
export async function readServerFile(
  kernel: K,
  { file, inside, ref, ...place }: ServerFile,
): Promise<ForeignServers | undefined> {
  try {
    const [real, root] = await Promise.all([realpath(file).catch(unlessAbsent), realpath(inside)])
    if (real === undefined) return undefined
    if (!isInside(real, root)) throw new Error(`it leads out of ${inside}`)
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' })
    const text = bytes?.toString() ?? ''
    const document = readJson(text, path.basename(file))
    const variable = ref ? (...of: [string, string]) => ({ ref: ref(...of) }) : await variablesIn(text, kernel)
    return foreignServers(document, { ...place, variable, at: placesIn(text) })
  } catch (error) {
    throw McpErrors.mcp_file_invalid(`${file} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

/** Variables of one file; more are not looked up. */
const MOST_VARIABLES = 256

/** Values of the variables that a file of the home names, from the environment of the daemon. */
async function variablesIn(text: string, kernel: K): Promise<ForeignPlace['variable']> {
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
 * The environment of the daemon, and the secrets of others, are not for a file that came with a repository.
 * @throws Fault `mcp_secret_forbidden` where a reference is none of the workspace's
 */
export function checkReferences(where: string, declaration: Declaration, workspace: Workspace): void {
  if (references(declaration).every(reference => isOf(workspace, reference))) return
  throw McpErrors.mcp_secret_forbidden(
    `${where}: the server ${declaration.name} may name only secrets vault:mcp/ws/${workspace.id}/…`,
  )
}

/** Milliseconds within which a file may change without its times telling: a file system counts them in ticks. */
const TICK_MS = 1000

/** What was read from files, as long as they are the same: a call of a tool asks for all sources again. */
export class KeptFiles {
  readonly #kept = new Map<string, { readonly sign: string; readonly content: unknown }>()

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /** What a file says, read by one of the functions above, and always by the same one. @throws Fault `mcp_file_invalid` */
  async read<T>(file: string, how: () => Promise<T>): Promise<T> {
    const sign = await this.#sign(file)
    const known = this.#kept.get(file)
    if (known && sign !== '' && known.sign === sign) return known.content as T
    this.#kept.delete(file)
    const content = await how()
    if (sign !== '' && sign === (await this.#sign(file))) {
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
      this.#kept.set(file, { sign, content })
    }
    return content
  }

  /** Of a regular file, and of none at all; empty where it does not tell one content from another. */
  async #sign(file: string): Promise<string> {
    try {
      const found = await lstat(file, { bigint: true })
      const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = found
      const isOld = this.clock.now() - Number(ctimeMs) > TICK_MS
      return isOld && found.isFile() ? [dev, ino, size, mtimeNs, ctimeNs].join(':') : ''
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : ''
    }
  }
}

/** A file that is not there is no fault; a link that leads back to itself is one. */
function unlessAbsent(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
}

function isOf({ id }: Workspace, reference: string): boolean {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && rest?.startsWith(`mcp/ws/${id}/`) === true
}
