import { lstat, realpath } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'
import { type Clock, messageOf } from '../../../../kernel/plugin.js'
import { isInside, type Workspace } from '../../../desk/workspaces/api.js'
import { readJson } from '../../../platform/configuration/api.js'
import { McpErrors } from '../errors.js'
import { type Declaration, Declarations } from './declaration.js'
import { type ForeignPlace, type ForeignServers, foreignServers } from './foreign.js'

const MOST_BYTES = 1024 * 1024
const MOST_KEPT = 256

/** As other programs write it: members that are not known are theirs. */
const Sidecar = v.object({ mcpServers: v.optional(Declarations, {}) })
/** The part of a workspace's `config.json` that is about servers. */
const Overlay = v.object({ mcp_servers: v.optional(Declarations, {}) })

/** Servers of an `mcp.json`. @throws Fault `mcp_file_invalid` naming the file and what is wrong in it */
export async function readSidecar(file: string, root: string): Promise<readonly Declaration[]> {
  return (await read(file, root, Sidecar))?.mcpServers ?? []
}

/** Servers of the `config.json` of a workspace. @throws Fault `mcp_file_invalid` */
export async function readOverlay(file: string, root: string): Promise<readonly Declaration[]> {
  return (await read(file, root, Overlay))?.mcp_servers ?? []
}

/** Servers of the `.mcp.json` of a workspace; undefined where there is none. @throws Fault `mcp_file_invalid` for a file that is no list of servers */
export async function readForeign(file: string, place: ForeignPlace): Promise<ForeignServers | undefined> {
  const servers = v.pipe(
    v.unknown(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      try {
        return foreignServers(dataset.value, place)
      } catch (error) {
        addIssue({ message: messageOf(error) })
        return NEVER
      }
    }),
  )
  return read(file, place.root, servers)
}

/**
 * The environment of the daemon, and the secrets of others, are not for a file that came with a repository.
 * @throws Fault `mcp_secret_forbidden` naming the first reference that is none of the workspace's
 */
export function checkReferences(where: string, servers: readonly Declaration[], workspace: Workspace): void {
  for (const { name, secret_env = {}, secret_headers = {}, auth } of servers) {
    const client = auth?.client_secret_ref
    const all = [...Object.values(secret_env), ...Object.values(secret_headers), ...(client ? [client] : [])]
    if (all.every(reference => isOf(workspace, reference))) continue
    throw McpErrors.mcp_secret_forbidden(
      `${where}: the server ${name} may name only secrets vault:mcp/ws/${workspace.id}/…`,
    )
  }
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

async function read<T>(file: string, root: string, schema: v.GenericSchema<unknown, T>): Promise<T | undefined> {
  try {
    const [real, inside] = await Promise.all([realpath(file).catch(unlessAbsent), realpath(root)])
    if (real === undefined) return undefined
    if (!isInside(real, inside)) throw new Error(`it leads out of ${root}`)
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' })
    return v.parse(schema, readJson(bytes?.toString() ?? '', path.basename(file)))
  } catch (error) {
    throw McpErrors.mcp_file_invalid(`${file} cannot be used: ${messageOf(error)}`, { cause: error })
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
