import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { ApplyOutcome } from '../../../schemas/settings.js'

/** The options of built-in commands include repeatable ones. */
type WithLists = CommandContext & { readonly lists: Readonly<Record<string, readonly string[]>> }

/** `svc mcp add <name> [command]` */
export async function runAdd({ args, options, lists, client, out, fault }: WithLists): Promise<void> {
  const { name = '', command: program } = args
  const list = (option: string) => lists[option] ?? []
  const pairs = (option: string) =>
    Object.fromEntries(
      list(option).map(pair => {
        const at = pair.indexOf('=')
        if (at < 1) return fault('usage', `--${option} ${JSON.stringify(pair)}: expected NAME=value`)
        return [pair.slice(0, at), pair.slice(at + 1)]
      }),
    )
  const some = (member: string, values: object) => (Object.keys(values).length > 0 ? { [member]: values } : {})
  const server = {
    name,
    ...(program !== undefined && { command: program, args: list('arg') }),
    ...(options.url !== undefined && { url: options.url }),
    ...some('env', pairs('env')),
    ...some('secret_env', pairs('secret-env')),
    ...some('headers', pairs('header')),
    ...some('secret_headers', pairs('secret-header')),
    ...(options.sandbox !== undefined && { sandbox: options.sandbox }),
    ...(options.required && { required: true }),
    ...(options['start-timeout'] !== undefined && { start_timeout: options['start-timeout'] }),
    ...(options['call-timeout'] !== undefined && { call_timeout: options['call-timeout'] }),
    ...(options.oauth && { auth: { type: 'oauth', registration: 'auto' } }),
  }
  const query = new URLSearchParams()
  if (options.workspace !== undefined) query.set('workspace_id', String(options.workspace))
  if (options.target !== undefined) query.set('target', String(options.target))
  const outcome = (await client.request('PUT', `/api/settings/mcp-servers/${encodeURIComponent(name)}?${query}`, {
    server,
  })) as ApplyOutcome
  if (out.json) return out.value(outcome)
  out.id(name)
  out.line(
    outcome.skipped
      ? `${name} is as it was`
      : `saved MCP server ${name}; look at it: ${command('mcp show', name, '--probe')}`,
  )
}
