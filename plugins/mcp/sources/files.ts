import { realpath } from 'node:fs/promises'
import { type ParseError, parse } from 'jsonc-parser'
import * as v from 'valibot'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { messageOf, readRegularFile } from '../../../kernel/plugin.js'
import { isInside, type Workspace } from '../../workspaces/api.js'
import { McpErrors } from '../errors.js'
import { type Declaration, Declarations } from './declaration.js'

const MOST_BYTES = 1024 * 1024

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

async function read<T>(file: string, root: string, schema: v.GenericSchema<unknown, T>): Promise<T | undefined> {
  try {
    const [real, inside] = await Promise.all([realpath(file).catch(() => undefined), realpath(root)])
    if (real === undefined) return undefined
    if (!isInside(real, inside)) throw new Error(`it leads out of ${root}`)
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' })
    const errors: ParseError[] = []
    const value = parse(bytes?.toString() ?? '', errors, { allowTrailingComma: true, allowEmptyContent: true })
    if (errors.length > 0) throw new Error('it is no valid JSON')
    return v.parse(schema, value ?? {})
  } catch (error) {
    throw McpErrors.mcp_file_invalid(`${file} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

function isOf({ id }: Workspace, reference: string): boolean {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && rest?.startsWith(`mcp/ws/${id}/`) === true
}
