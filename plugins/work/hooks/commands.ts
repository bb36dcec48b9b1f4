import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { HookCatalogEntry } from '../../../schemas/hooks/replies.js'
import { HookErrors } from './api.js'

/** Fields of a hook, one per line. */
const fields = {
  Name: 'name',
  Event: 'event',
  Source: 'source',
  Owner: 'owner',
  Mode: 'mode',
  Required: 'required',
  Enabled: 'enabled',
  Order: 'order',
  Priority: 'priority',
  Command: 'command',
  Extension: 'extension',
  Warm: 'warm',
  Timeout: 'timeout_ms',
  Matcher: 'matcher',
  Workspace: 'workspace_id',
  'Shadowed sources': 'shadowed_sources',
  Coverage: 'reach',
  Warnings: 'warnings',
} as const satisfies Readonly<Record<string, keyof HookCatalogEntry>>
const WIDTH = Math.max(...Object.keys(fields).map(header => header.length))

function textOf(member: keyof HookCatalogEntry, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (member === 'timeout_ms') return `${Number(value) / 1000}s`
  if (Array.isArray(value)) return value.join(', ')
  // A line break in a value must not look like another field.
  return typeof value === 'object' || /[\n\r\u2028\u2029]/.test(String(value)) ? JSON.stringify(value) : String(value)
}

/** `svc hooks info`. */
export async function runInfo({ client, out, args, options }: CommandContext): Promise<number | undefined> {
  const query = new URLSearchParams()
  if (options.workspace !== undefined) query.set('workspace', String(options.workspace))
  if (options.agent !== undefined) query.set('agent', String(options.agent))
  const { hooks } = (await client.request('GET', `/api/hooks/catalog?${query}`)) as { hooks: HookCatalogEntry[] }
  const found = hooks.filter(({ name }) => name === args.name)
  if (found.length === 0) {
    // A dotted name such as `permission.request` is probably an event.
    const more = args.name?.includes('.') ? { next: command('hooks events') } : {}
    throw HookErrors.hook_not_found(`hook not found: ${args.name}`, more)
  }
  if (out.json) out.value({ hooks: found })
  else for (const [n, hook] of found.entries()) show(hook, n > 0, out)
  return undefined
}

function show(hook: HookCatalogEntry, isNext: boolean, out: CommandContext['out']): void {
  if (isNext) out.line('')
  out.id(hook.name)
  for (const [header, member] of Object.entries(fields)) {
    const value = hook[member]
    if (value !== undefined && JSON.stringify(value) !== '{}')
      out.line(`${header.padEnd(WIDTH)}  ${textOf(member, value)}`)
  }
}
