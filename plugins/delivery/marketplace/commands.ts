import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type {
  Given,
  InstallMcpServerReply,
  MarketplaceDetail,
  MarketplaceEntry,
  MarketplaceKind,
  MarketplaceKindPage,
  MarketplaceSearchReply,
} from '../../../schemas/marketplace.js'

/** `svc marketplace search [query]` */
export const searchAll = (context: CommandContext) => search(context)
/** `svc extension search [query]` */
export const searchExtensions = (context: CommandContext) => search(context, 'extension')
/** `svc skill search [query]` */
export const searchSkills = (context: CommandContext) => search(context, 'skill')

/** The options of built-in commands include repeatable ones. */
type WithLists = CommandContext & { readonly lists: Readonly<Record<string, readonly string[]>> }

/** `svc mcp install <entry>` */
export async function installServer(context: WithLists): Promise<void> {
  const { args, options, lists, client, out, fault } = context
  const { entry = '' } = args
  const list = (name: string) => lists[name] ?? []
  const env: Record<string, Given> = {}
  for (const pair of list('env')) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
    if (name === undefined || value === undefined)
      return fault('usage', `--env ${JSON.stringify(pair)}: expected NAME=value`)
    env[name] = { value }
  }
  for (const assignment of list('secret')) {
    const [name = '', ref] = assignment.split(/=(.*)/s)
    if (ref !== undefined) env[name] = { vault_ref: ref }
    else {
      const value = await context.unseen?.(`${name}: `)
      if (value === undefined)
        return fault('usage', `--secret ${name} is typed on a terminal; here give --secret ${name}=vault:mcp/…`)
      env[name] = { value }
    }
  }
  const workspace = await workspaceFor(entry, context)
  const body = {
    entry_id: entry,
    ...(options.name !== undefined && { name: options.name }),
    ...(workspace === undefined ? { scope: 'global' } : { scope: 'workspace', workspace_id: workspace }),
    values: { env },
  }
  const reply = (await client.request('POST', '/api/settings/mcp-servers/install', body)) as InstallMcpServerReply
  if (out.json) return out.value(reply)
  const { mcp_server: server, next_step: next, warnings = [] } = reply
  const what = server.url ?? [server.command, ...(server.args ?? [])].join(' ')
  out.id(server.name)
  out.line(`installed MCP server ${server.name}${workspace === undefined ? '' : ` for ${workspace}`}: ${what}`)
  for (const { title, message } of warnings) out.line(out.color('yellow', `warning: ${title}: ${message}`))
  const where = workspace === undefined ? [] : ['--workspace', workspace]
  const login = `log in: ${command('mcp auth login', server.name, ...where)}`
  out.line(next === 'authorize' ? login : `look at it: ${command('mcp show', server.name, '--probe')}`)
}

/**
 * The workspace of a server; undefined: all workspaces. Without an option, the entry's `default_scope` chooses between
 * all workspaces and the current one.
 */
async function workspaceFor(
  entry: string,
  { options, cwd, client, fault }: CommandContext,
): Promise<string | undefined> {
  const { workspace, global } = options
  if (typeof workspace === 'string')
    return global ? fault('usage', '--workspace and --global exclude each other') : workspace
  if (global) return undefined
  const detail = (await client.request('GET', `/api/marketplace/mcp/${encodeURIComponent(entry)}`)) as MarketplaceDetail
  return detail.mcp?.default_scope === 'workspace' ? cwd : undefined
}

/** The command that installs an entry, by kind. */
const INSTALL = {
  extension: 'svc extension install <id> --from curated',
  mcp: 'svc mcp install <id>',
  skill: 'svc skill install <id>',
} as const

async function search({ args, client, out }: CommandContext, kind?: MarketplaceKind): Promise<void> {
  const query = args.query === undefined ? '' : `?q=${encodeURIComponent(args.query)}`
  const reply = await client.request('GET', `/api/marketplace/${kind ?? 'search'}${query}`)
  if (out.json) return out.value(reply)
  const pages = kind ? [reply as MarketplaceKindPage] : (reply as MarketplaceSearchReply).kinds
  let count = 0
  for (const { items, kind: of, stale, error, total } of pages) {
    if (stale) out.line(`${of}: an earlier copy, because the catalog cannot be read: ${error ?? 'no reason given'}`)
    else if (error !== undefined) out.line(`${of}: ${error}`)
    for (const entry of items) out.line(lineOf(entry))
    if ((total ?? 0) > items.length) out.line(`${(total ?? 0) - items.length} more: ${command('marketplace list', of)}`)
    count += items.length
  }
  for (const { kind: of, items } of pages)
    if (items.length > 0 && of in INSTALL) out.line(out.color('dim', `install: ${INSTALL[of as keyof typeof INSTALL]}`))
  if (count > 0) return
  const isOff = pages.every(page => page.error_class === 'not_configured' || page.kind === 'bundle')
  out.line(
    isOff ? 'no catalog; choose one: svc config set marketplace.catalog.base_url <url-or-folder>' : 'nothing found',
  )
}

function lineOf({
  kind,
  entry_id: id,
  version,
  description,
  installed_version: installed,
  trust,
}: MarketplaceEntry): string {
  const notes = [
    ...(installed === undefined ? [] : [`installed ${installed}`]),
    ...(trust?.decision === 'refused' ? ['refused; for the reason: svc marketplace info'] : []),
  ]
  const note = notes.length > 0 ? ` (${notes.join(', ')})` : ''
  return `${kind} ${id}${version === undefined ? '' : ` ${version}`}${note}: ${description.split('\n', 1)[0]}`
}
