import type { CliColumn, CommandContext } from '../../kernel/plugin.js'
import type { HookCatalogEntry } from '../../schemas/hooks/replies.js'
import { HookErrors } from './api.js'

const fields: readonly CliColumn[] = [
  { header: 'NAME', path: 'name' },
  { header: 'EVENT', path: 'event' },
  { header: 'SOURCE', path: 'source' },
  { header: 'OWNER', path: 'owner' },
  { header: 'MODE', path: 'mode' },
  { header: 'REQUIRED', path: 'required' },
  { header: 'ENABLED', path: 'enabled' },
  { header: 'ORDER', path: 'order' },
  { header: 'PRIORITY', path: 'priority' },
  { header: 'COMMAND', path: 'command', below: true },
  { header: 'PROCESS OF', path: 'extension' },
  { header: 'STAYS', path: 'warm' },
  { header: 'TIMEOUT', path: 'timeout_ms', as: 'duration' },
  { header: 'MATCHER', path: 'matcher', below: true },
  { header: 'WORKSPACE', path: 'workspace_id' },
  { header: 'HIDES THOSE OF', path: 'shadowed_sources', as: 'list', below: true },
  { header: 'REACHES', path: 'reach', below: true },
]

/** `svc hooks info`. */
export async function runInfo({ client, out, args, options }: CommandContext): Promise<number | undefined> {
  const query = new URLSearchParams()
  if (options.workspace !== undefined) query.set('workspace', String(options.workspace))
  if (options.agent !== undefined) query.set('agent', String(options.agent))
  const { hooks } = (await client.request('GET', `/api/hooks/catalog?${query}`)) as { hooks: HookCatalogEntry[] }
  const found = hooks.filter(({ name }) => name === args.name)
  if (found.length === 0) throw HookErrors.hook_not_found(`there is no hook ${args.name}`)
  if (out.json) out.value({ hooks: found })
  else for (const hook of found) out.table([hook], fields)
  return undefined
}
