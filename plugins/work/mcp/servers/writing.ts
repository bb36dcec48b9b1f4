import { command as commandLine } from '../../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, Fault, KernelErrors, messageOf } from '../../../../kernel/plugin.js'
import type { McpTargetQuery, PutMcpServerBody } from '../../../../schemas/settings/mcp-servers.js'
import type { ApplyOutcome, SettingsWriteTarget } from '../../../../schemas/settings.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import { ConfigErrors } from '../../../platform/configuration/api.js'
import type { CatalogOrigin } from '../api.js'
import type { Manager } from '../client/manager.js'
import { idPart } from '../client/tools.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import { asWritten, type Declaration, isWritable, type Server } from '../sources/declaration.js'
import type { Sources } from '../sources/sources.js'
import type { Leaving } from './leaving.js'
import { refBase, references } from './own-secrets.js'
import { targetsOf } from './views.js'

/** Characters of a server's part in an id; the tool's name needs the rest. */
const MAX_PART = 64

/** Whether a vault secret is not one for servers. */
function isForeign(reference: string): boolean {
  const { scheme, rest = '' } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && !rest.startsWith('mcp/')
}

/** Changes the servers in `config.json` and `mcp.json` through the plugin `settings`, which records every change. */
export class Writing {
  constructor(
    private readonly kernel: K,
    private readonly sources: Sources,
    private readonly manager: Manager,
    private readonly leaving: Leaving,
  ) {}

  /** @throws Fault `mcp_server_invalid`, and those of settings and the vault */
  async put(
    name: string,
    { target: requestedTarget = 'auto' }: McpTargetQuery,
    workspace: Workspace | undefined,
    body: PutMcpServerBody,
    actor: Actor,
    origin?: CatalogOrigin,
  ): Promise<ApplyOutcome> {
    const before = await this.#find(name, workspace)
    const written = before && writableIn(before, workspace)
    const targets = targetsOf[workspace ? 'workspace' : 'global']
    const target = requestedTarget === 'auto' ? (written ?? targets.config) : targets[requestedTarget]
    const { server } = body
    if (server.name !== name)
      throw McpErrors.mcp_server_invalid(`the body names ${shown(server.name)}, the path ${shown(name)}`)
    const isOwn = before !== undefined && written === before.source.kind
    const value: Value = {
      ...this.#kept(body, isOwn ? asWritten(before.declaration) : undefined),
      ...(origin && { catalog_entry: origin.entry }),
      ...(origin?.version !== undefined && { catalog_version: origin.version }),
    }
    check(name, value)
    const foreign = references({ name, ...value } as Declaration).find(isForeign)
    if (foreign !== undefined)
      throw McpErrors.mcp_server_invalid(
        `${shown(foreign)} is not a secret of an MCP server; use vault:mcp/… or env:NAME`,
      )
    if (before === undefined) await this.#mustBeDistinct(name, workspace)
    const undo = await this.#storeSecrets(name, workspace, body, value, actor)
    const replaces = before && isOwn
    const going = replaces ? await this.leaving.begin(before, workspace) : undefined
    const outcome = await this.#write(target, workspace, name, value, actor).catch(async error => {
      if (going) await this.leaving.cancel(going)
      await undo()
      throw error
    })
    if (replaces) await this.manager.forget(before)
    if (going) await this.leaving.end(going, actor)
    return outcome
  }

  /** @throws Fault `mcp_server_not_found`, `mcp_server_read_only`, `mcp_server_in_use`, and those of settings */
  async remove(
    name: string,
    { target: requestedTarget = 'auto' }: McpTargetQuery,
    workspace: Workspace | undefined,
    actor: Actor,
  ): Promise<ApplyOutcome> {
    const { servers, problems } = await this.sources.read({ workspace })
    const server = servers.find(one => one.name === name)
    const problem = problems.find(({ error }) => error instanceof Fault && error.code === 'mcp_file_invalid')
    // The server may be in the unreadable file, so its absence is not certain.
    if (!server && problem)
      throw ConfigErrors.config_file_invalid(messageOf(problem.error), { next: commandLine('mcp list') })
    if (!server) throw McpErrors.mcp_server_not_found(`there is no MCP server ${shown(name)} here`)
    const targets = targetsOf[workspace ? 'workspace' : 'global']
    const target = requestedTarget === 'auto' ? writableIn(server, workspace) : targets[requestedTarget]
    if (target === undefined || !all(server).some(({ kind }) => kind === target))
      throw McpErrors.mcp_server_read_only(
        `the MCP server ${shown(name)} is declared in ${server.source.where}; remove it there`,
      )
    if (server.source.kind === target) this.manager.checkUnused(server)
    const isSeen = server.source.kind === target
    const going = isSeen ? await this.leaving.begin(server, workspace) : undefined
    const outcome = await this.#write(target, workspace, name, undefined, actor).catch(async error => {
      if (going) await this.leaving.cancel(going)
      throw error
    })
    if (isSeen) await this.manager.forget(server)
    if (going) await this.leaving.end(going, actor)
    return outcome
  }

  /** Tool ids contain the server's name: two servers with the same part would hide each other's tools. */
  async #mustBeDistinct(name: string, workspace: Workspace | undefined): Promise<void> {
    const part = idPart(name)
    if (part === '')
      throw McpErrors.mcp_server_invalid(`the name ${shown(name)} cannot be used in tool ids; use letters or digits`)
    if (part.length > MAX_PART)
      throw McpErrors.mcp_server_invalid(
        `the name ${shown(name, 80)} is too long for ids of tools; use at most ${MAX_PART} characters`,
      )
    if (name.includes('.'))
      throw McpErrors.mcp_server_invalid(`the name ${shown(name)} contains a dot; use letters, digits, _ and -`)
    const { servers } = await this.sources.read({ workspace })
    const other = servers.find(server => idPart(server.name) === part)
    if (other)
      throw McpErrors.mcp_server_name_taken(
        `tools of ${shown(name)} would have the same ids as tools of ${shown(other.name)} (mcp__${part}__…); use another name`,
        { next: commandLine('mcp show', other.name) },
      )
  }

  async #find(name: string, workspace: Workspace | undefined): Promise<Server | undefined> {
    return (await this.sources.read({ workspace })).servers.find(server => server.name === name)
  }

  /** The new content of the entry: the body, and the preserved values of the old entry. */
  #kept({ server, preserve_env, preserve_secrets }: PutMcpServerBody, before: Declaration | undefined): Value {
    const { name: _, auth, ...rest } = server
    const env = { ...pick(before?.env, preserve_env), ...rest.env }
    const secretEnv = { ...pick(before?.secret_env, preserve_secrets?.secret_env), ...rest.secret_env }
    const ref = preserve_secrets?.oauth_client_secret ? before?.auth?.client_secret_ref : undefined
    return {
      ...rest,
      ...(Object.keys(env).length > 0 && { env }),
      ...(Object.keys(secretEnv).length > 0 && { secret_env: secretEnv }),
      ...(auth && { auth: { ...(ref !== undefined && { client_secret_ref: ref }), ...auth } }),
    }
  }

  /**
   * Stores the secrets of a body and puts references in the entry; resolves with a function that removes the new ones
   * again.
   */
  async #storeSecrets(
    name: string,
    workspace: Workspace | undefined,
    { secret_values: secrets }: PutMcpServerBody,
    value: Value,
    actor: Actor,
  ): Promise<() => Promise<void>> {
    const wanted: (readonly [path: string, secret: string])[] = Object.entries(secrets?.secret_env ?? {}).map(
      ([key, secret]) => [`env/${key}`, secret],
    )
    const client = secrets?.oauth_client_secret
    if (client) wanted.push(['oauth/client-secret', client])
    if (wanted.length === 0) return async () => {}
    const vault = this.kernel.needs.vault.current
    if (!vault) throw McpErrors.mcp_server_invalid('secrets cannot be stored, because the vault is not available')
    const made: string[] = []
    for (const [path, secret] of wanted) {
      const reference = `${refBase(name, workspace?.id)}/${path}`
      const isNew = (await vault.reveal(reference)) === undefined
      await vault.put(reference, secret, { actor, kind: 'mcp' })
      if (isNew) made.push(reference)
      if (path.startsWith('env/')) value.secret_env = { ...value.secret_env, [path.slice(4)]: reference }
      else value.auth = { ...value.auth, client_secret_ref: reference }
    }
    return async () => {
      for (const reference of made) await vault.delete(reference, actor)
    }
  }

  async #write(
    target: SettingsWriteTarget,
    workspace: Workspace | undefined,
    name: string,
    value: Value | undefined,
    actor: Actor,
  ): Promise<ApplyOutcome> {
    const body = {
      changes: [{ key: 'mcp_servers', name, ...(value && { value }) }],
      target,
      ...(workspace && { workspace_id: workspace.id }),
    }
    const keys = this.kernel.needs.settings.current
    if (!keys)
      throw KernelErrors.unavailable('the plugin settings, which writes the files of MCP servers, does not run')
    return { ...(await keys.patchKeys(body, actor)), section: 'mcp-servers' }
  }
}

type Value = {
  -readonly [K in keyof Omit<Declaration, 'name' | 'written'>]: Declaration[K]
}

const all = ({ source, shadowed }: Server) => [...shadowed, source]

/** The strongest writable file of a scope that declares the server. */
function writableIn(server: Server, workspace: Workspace | undefined): SettingsWriteTarget | undefined {
  const scope = workspace ? 'workspace' : 'global'
  return all(server)
    .filter(source => source.scope === scope)
    .map(({ kind }) => kind)
    .filter(isWritable)
    .at(-1)
}

function check(name: string, { command, url, auth, transport, sandbox }: Value): void {
  const problem =
    (command === undefined) === (url === undefined)
      ? 'give exactly one of command and url'
      : transport !== undefined && (transport === 'stdio') !== (command !== undefined)
        ? `transport ${shown(transport)} does not match ${command === undefined ? 'a url' : 'a command'}`
        : sandbox !== undefined && command === undefined
          ? 'sandbox is only for a server that is started'
          : auth && command !== undefined
            ? 'auth is not possible for a server that is started'
            : auth?.registration === 'pre_registered' && !(auth.issuer_url && auth.client_id)
              ? 'auth: registration pre_registered needs issuer_url and client_id'
              : undefined
  if (problem !== undefined) throw McpErrors.mcp_server_invalid(`${shown(name)}: ${problem}`)
}

const pick = (from: Readonly<Record<string, string>> = {}, names: readonly string[] = []) =>
  Object.fromEntries(names.flatMap(name => (Object.hasOwn(from, name) ? [[name, from[name] as string]] : [])))
