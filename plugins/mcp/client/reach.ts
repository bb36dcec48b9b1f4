import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { type MaybeToken, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { Processes } from '../../processes/api.js'
import type { ConfinementApi, ProgramCommand } from '../../sandboxes/api.js'
import type { Workspaces } from '../../workspaces/api.js'
import { McpErrors } from '../errors.js'
import type { Declaration, Server } from '../sources/declaration.js'
import { boundedFetch } from './bounded-fetch.js'
import type { Confined } from './confining.js'

/** Of the environment of the daemon, what programs need to run at all; never the whole of it. */
const PASSED_ON = ['HOME', 'LANG', 'LC_ALL', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']

/** A way to a server. */
export interface Reached {
  readonly transport: Transport
  /** Why it ended and what it said, as far as is known; empty: nothing is. */
  lastWords(): string
}

export type ReachKernel = PluginKernel<{
  processes: typeof Processes
  workspaces: typeof Workspaces
  sandboxes: MaybeToken<ConfinementApi>
}>

/** Values of a declaration with its secrets, which are resolved now. @throws Fault `mcp_unreachable` naming one that is missing */
export async function valuesOf(
  { collect, name }: Pick<PluginKernel, 'collect' | 'name'>,
  server: string,
  workspaceId: string,
  plain: Readonly<Record<string, string>> = {},
  secrets: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  // Secrets of the servers of another workspace are not resolved for this one.
  const asker = { collect, name: workspaceId ? `${name}/${workspaceId}` : name }
  const all = { ...plain }
  for (const [key, reference] of Object.entries(secrets))
    all[key] = await resolveSecret(asker, reference, `${key} of the MCP server ${server}`)
  return all
}

/** Starts a server, or makes ready to call one over HTTP. @throws Fault `mcp_unreachable` */
export async function reach(
  kernel: ReachKernel,
  server: Server,
  confined: Confined | undefined,
  fetchWith: (headers: Readonly<Record<string, string>>) => typeof fetch = boundedFetch,
): Promise<Reached> {
  const { declaration, name, source } = server
  const { command, url } = declaration
  const workspaceId = source.workspaceId ?? ''
  try {
    if (url !== undefined) {
      const headers = await valuesOf(kernel, name, workspaceId, declaration.headers, declaration.secret_headers)
      const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
      const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: fetchWith(headers) })
      return { transport: transport as Transport, lastWords: () => '' }
    }
    if (command === undefined) throw new Error('it has neither a command nor a url')
    return await start(kernel, name, workspaceId, [command, ...(declaration.args ?? [])], declaration, confined)
  } catch (error) {
    throw McpErrors.mcp_unreachable(`${name} (${source.where}): ${messageOf(error)}`, { cause: error })
  }
}

async function start(
  kernel: ReachKernel,
  name: string,
  workspaceId: string,
  argv: readonly string[],
  { env: plain, secret_env }: Declaration,
  confined: Confined | undefined,
): Promise<Reached> {
  const passed = PASSED_ON.flatMap(key => (kernel.env[key] === undefined ? [] : [[key, kernel.env[key]] as const]))
  const workspace = kernel.needs.workspaces.get(workspaceId)
  const env = { ...Object.fromEntries(passed), ...(await valuesOf(kernel, name, workspaceId, plain, secret_env)) }
  const label = `MCP server ${name}`
  const handle = confined
    ? await startConfined(kernel, label, { argv, env }, confined)
    : await kernel.needs.processes.spawn({
        ...{ label, argv, env, stdio: 'pipe' },
        cwd: workspace?.rootDir ?? kernel.home.root,
      })
  const { ProcessTransport } = await import('./process-transport.js')
  const transport = new ProcessTransport(handle)
  return { transport, lastWords: () => kernel.redact.text(transport.lastWords) }
}

/** Never without its sandbox. Throws where that cannot be started. */
async function startConfined(kernel: ReachKernel, label: string, command: ProgramCommand, confined: Confined) {
  const sandboxes = kernel.needs.sandboxes.current
  if (!sandboxes) throw new Error('it has to run in a sandbox, and the plugin sandboxes does not run')
  const { ended, ...enclosed } = await sandboxes.encloseProgram(`mcp_${kernel.ids.hex(16)}`, confined, command)
  const putAside = () =>
    void ended().catch(error =>
      kernel.log.error('what a sandboxed MCP server left was not put aside', { error: messageOf(error) }),
    )
  try {
    const handle = await kernel.needs.processes.spawn({ label, ...enclosed, stdio: 'pipe' })
    void handle.exited.then(putAside)
    return handle
  } catch (error) {
    putAside()
    throw error
  }
}
