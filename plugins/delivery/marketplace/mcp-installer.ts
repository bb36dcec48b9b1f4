import { command as commandLine, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { shown } from '../../../kernel/kit/text.js'
import type { Actor } from '../../../kernel/plugin.js'
import type {
  Given,
  InstallMcpServerBody,
  InstallMcpServerReply,
  MarketplaceEntry,
} from '../../../schemas/marketplace.js'
import type { McpServerView, PutMcpServerBody } from '../../../schemas/settings/mcp-servers.js'
import { MarketplaceErrors } from './api.js'
import type { Entry } from './feed.js'
import type { K } from './needs.js'

type Section = NonNullable<Entry['mcp']>

/** Values given by a person, and the existing server of the entry. */
interface Values {
  readonly input: NonNullable<InstallMcpServerBody['values']>
  readonly before: McpServerView | undefined
}

/** Creates MCP servers from catalog entries. */
export class McpInstaller {
  /** @param find returns an entry of the catalog, parsed and in wire form; throws `marketplace_entry_not_found` */
  constructor(
    private readonly kernel: K,
    private readonly find: (id: string) => Promise<readonly [Entry, MarketplaceEntry]>,
  ) {}

  /**
   * Declares the server of an entry; an existing server of the same entry is replaced and keeps values that are not
   * given again.
   * @throws Fault `mcp_install_invalid`, `mcp_install_values_missing`, `mcp_server_exists`, and those of declaring a server
   */
  async install(
    { entry_id: id, name: wanted, scope, workspace_id, values }: InstallMcpServerBody,
    actor: Actor,
  ): Promise<InstallMcpServerReply> {
    const mcp = this.kernel.needs.mcp.current
    if (!mcp) throw MarketplaceErrors.marketplace_unavailable('the plugin for MCP servers does not run')
    const [entry, view] = await this.find(id)
    if (!entry.mcp) throw MarketplaceErrors.mcp_install_invalid(`the entry ${shown(id)} does not describe its server`)
    const name = wanted ?? entry.name
    const target = { scope, ...(workspace_id !== undefined && { workspace_id }) }
    const found = await mcp.shown(name, target)
    const before = found?.scope === scope ? found : undefined
    if (before && before.catalog_entry !== entry.id)
      throw MarketplaceErrors.mcp_server_exists(
        `there is an MCP server ${shown(name)} already, in ${before.declared_in}`,
        {
          next: commandLine('mcp install', entry.id, '--name', placeholder('other-name')),
        },
      )
    const body = bodyOf(name, entry.mcp, { input: values ?? {}, before })
    const apply = await mcp.declare(body, target, { entry: entry.id, version: view.version }, actor)
    const server = await mcp.shown(name, target)
    if (!server) throw MarketplaceErrors.mcp_install_invalid(`${shown(name)} is not among the servers of this place`)
    const warnings = view.trust?.warnings
    return {
      apply,
      mcp_server: server,
      next_step: server.auth && server.auth_status?.status !== 'authenticated' ? 'authorize' : 'none',
      ...(warnings && { warnings }),
    }
  }
}

/** The request that declares the server of an entry. */
function bodyOf(name: string, section: Section, values: Values): PutMcpServerBody {
  const { command, args, url, transport } = section
  const isStarted = command !== undefined && url === undefined
  if (isStarted === (url !== undefined))
    throw MarketplaceErrors.mcp_install_invalid('the entry has neither or both of command and url')
  if ((transport === 'stdio') !== isStarted)
    throw MarketplaceErrors.mcp_install_invalid(
      `the entry has transport ${shown(transport)} and ${isStarted ? 'a command' : 'a url'}`,
    )
  const { auth, secret } = loginOf(section, values)
  const variables = variablesOf(section, values)
  const { env, secretEnv, plainSecrets } = variables
  return {
    server: {
      name,
      ...(isStarted ? { command, args: [...(args ?? [])] } : { url }),
      ...(Object.keys(env).length > 0 && { env }),
      ...(Object.keys(secretEnv).length > 0 && { secret_env: secretEnv }),
      ...(auth && { auth }),
    },
    preserve_env: variables.keptEnv,
    preserve_secrets: {
      secret_env: variables.keptSecrets,
      oauth_client_secret: values.before?.auth?.client_secret_configured === true && secret === undefined,
    },
    secret_values: {
      secret_env: plainSecrets,
      ...(secret !== undefined && { oauth_client_secret: secret }),
    },
  }
}

function variablesOf({ env: declared = [], url }: Section, { input: { env: values = {} }, before }: Values) {
  const known = new Set(declared.map(({ name }) => name))
  const unknown = Object.keys(values).find(name => !known.has(name))
  if (unknown !== undefined)
    throw MarketplaceErrors.mcp_install_invalid(
      `the entry has no variable ${shown(unknown)}, only ${[...known].join(', ') || 'none'}`,
    )
  if (declared.length > 0 && url !== undefined)
    throw MarketplaceErrors.mcp_install_invalid(
      'the entry has variables and a url: a server with a url does not use them',
    )
  const odd = declared.find(({ name }) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
  if (odd) throw MarketplaceErrors.mcp_install_invalid(`${shown(odd.name)} is not a valid name of a variable`)
  const all = {
    env: {} as Record<string, string>,
    secretEnv: {} as Record<string, string>,
    plainSecrets: {} as Record<string, string>,
    keptEnv: [] as string[],
    keptSecrets: [] as string[],
  }
  const missing: string[] = []
  for (const { name, secret, required, default: fallback } of declared) {
    const value = values[name]
    if (value && 'vault_ref' in value) all.secretEnv[name] = reference(value)
    else if (value && secret) all.plainSecrets[name] = value.value
    else if (value) all.env[name] = value.value
    else if (before?.env_keys?.includes(name)) all.keptEnv.push(name)
    else if (before?.secret_env_keys?.includes(name)) all.keptSecrets.push(name)
    else if (fallback !== undefined && !secret) all.env[name] = fallback
    else if (required) missing.push(name)
  }
  if (missing.length > 0)
    throw MarketplaceErrors.mcp_install_values_missing(`the server needs ${missing.join(', ')}`, {
      details: { missing: missing.join(',') },
    })
  return all
}

/** The login of a server, and the client secret if it was given as a value. */
function loginOf(
  { oauth, url }: Section,
  { input: { oauth_client_secret: clientSecret } }: Values,
): { readonly auth?: PutMcpServerBody['server']['auth']; readonly secret?: string } {
  if (!oauth) {
    if (clientSecret)
      throw MarketplaceErrors.mcp_install_invalid('the entry has no login, so a client secret has no use')
    return {}
  }
  if (url === undefined) throw MarketplaceErrors.mcp_install_invalid('a server that is started has no login')
  const { client_id, issuer_url, authorization_url, token_url, scopes } = oauth
  const isKnown = client_id !== '' && issuer_url !== undefined
  const auth = {
    type: 'oauth',
    registration: isKnown ? ('pre_registered' as const) : ('auto' as const),
    ...(client_id !== '' && { client_id }),
    ...(issuer_url !== undefined && { issuer_url }),
    ...(authorization_url !== undefined && { authorization_url }),
    ...(token_url !== undefined && { token_url }),
    ...(scopes && { scopes: [...scopes] }),
    ...(clientSecret && 'vault_ref' in clientSecret && { client_secret_ref: reference(clientSecret) }),
  }
  return { auth, ...(clientSecret && 'value' in clientSecret && { secret: clientSecret.value }) }
}

function reference({ vault_ref: ref }: Extract<Given, { vault_ref: string }>): string {
  const scheme = parseSecretRef(ref)?.scheme
  if (scheme === 'vault' || scheme === 'env') return ref
  throw MarketplaceErrors.mcp_install_invalid(
    `${shown(ref)} is not a secret reference, such as vault:mcp/global/name/token`,
  )
}
