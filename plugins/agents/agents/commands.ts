import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { Agent, AgentReply } from '../../../schemas/agents.js'

/** `svc agent create <name>` */
export async function runCreate(context: CommandContext): Promise<void> {
  const { args, client } = context
  const fields = await fieldsOf(context)
  if (fields.prompt === undefined) context.fault('usage', 'give the prompt of the agent with --prompt or --file')
  const workspace = context.options.workspace as string | undefined
  const scope = workspace === undefined ? { scope: 'global' } : { scope: 'workspace', workspace }
  const body = { agent: { name: args.name, ...fields }, ...scope }
  show(context, 'created', (await client.request('POST', '/api/agents', body)) as AgentReply)
}

/** `svc agent update <name>`: fields that are not given stay. */
export async function runUpdate(context: CommandContext): Promise<void> {
  const { args, client } = context
  const fields = await fieldsOf(context)
  if (Object.keys(fields).length === 0) context.fault('usage', 'give at least one option to change, such as --model')
  const workspace = context.options.workspace as string | undefined
  const query = workspace === undefined ? '' : `?workspace=${encodeURIComponent(workspace)}`
  const url = `/api/agents/${encodeURIComponent(args.name ?? '')}`
  const { agent } = (await client.request('GET', `${url}${query}`)) as AgentReply
  const body = {
    agent: { ...written(agent), ...fields },
    expected_digest: agent.definition_digest,
    ...(workspace === undefined ? {} : { workspace }),
  }
  show(context, 'updated', (await client.request('PUT', url, body)) as AgentReply)
}

/** `svc agent duplicate <name> <new_name>` */
export async function runDuplicate(context: CommandContext): Promise<void> {
  const { args, options, client } = context
  const overrides = await fieldsOf(context)
  const workspace = context.options.workspace as string | undefined
  const body = {
    name: args.new_name,
    ...(Object.keys(overrides).length > 0 ? { overrides } : {}),
    ...(options.scope === undefined ? {} : { scope: options.scope }),
    ...(workspace === undefined ? {} : { workspace }),
  }
  const url = `/api/agents/${encodeURIComponent(args.name ?? '')}/duplicate`
  show(context, 'created', (await client.request('POST', url, body)) as AgentReply)
}

async function fieldsOf({ options, readFile, fault }: CommandContext): Promise<Record<string, unknown>> {
  if (options.prompt !== undefined && options.file !== undefined)
    fault('usage', 'give the text with --prompt or with --file, not both')
  const fields: Record<string, unknown> = {
    prompt: typeof options.file === 'string' ? await readFile(options.file) : options.prompt,
    provider: options.provider,
    command: options.command,
    model: options.model,
    reasoning_effort: options['reasoning-effort'],
    permissions: options.permissions,
    category_path: typeof options.category === 'string' ? options.category.split('/') : undefined,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

const WRITTEN = [
  'name',
  'prompt',
  'category_path',
  'command',
  'deny_tools',
  'model',
  'permissions',
  'reasoning_effort',
  'skills',
  'tools',
  'toolsets',
] as const

/** The fields of a definition as in the file; an empty list counts as none. */
function written(agent: Agent): Record<string, unknown> {
  const own = agent.effective_runtime?.sources.provider === 'agent' || agent.effective_runtime === null
  const members: [string, unknown][] = WRITTEN.map(name => [name, agent[name]])
  if (own && agent.provider !== '') members.push(['provider', agent.provider])
  return Object.fromEntries(members.filter(([, value]) => !isEmpty(value)))
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty)
  return value === undefined || value === null || value === ''
}

function show({ out }: CommandContext, did: string, reply: AgentReply): void {
  if (out.json) {
    out.value(reply)
    return
  }
  const { name, origin, workspace_id: workspace, diagnostics = [] } = reply.agent
  out.line(`${did} ${name} (${origin})`)
  for (const { message } of diagnostics) out.note?.(message)
  const where = workspace === undefined ? [] : ['--workspace', workspace]
  out.line(out.color('dim', `next: ${command('agent info', name, ...where)}`))
}
