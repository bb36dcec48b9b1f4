import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import type {
  BridgeHealthChange,
  BridgeProviderInfo,
  BridgeProvidersReply,
  BridgeReply,
  AppManifestReply,
  VerifyBridgeReply,
} from '../../../../schemas/bridges.js'
import { type ConfigField, fieldsOf, typedValue } from './config-fields.js'
import { refOf } from './secrets-ref.js'

/** An adapter has connected in this time, or the setup goes on without. */
const READY_MS = 60_000
const WIDTH = 78

type Terminal = CommandContext & { readonly terminal: NonNullable<CommandContext['terminal']> }

/** `svc bridge setup <platform>`: asks for all that a bridge needs, starts it and proves that it works. */
export async function setUp(context: CommandContext): Promise<number | undefined> {
  const { args, client, fault, out } = context
  if (!hasTerminal(context))
    return fault(
      'terminal_missing',
      'the setup asks questions and needs a terminal',
      command('bridge create', '--help'),
    )
  const { providers } = (await client.request('GET', '/api/bridges/providers')) as BridgeProvidersReply
  const provider = await chooseProvider(context, providers, args.platform)
  out.line(out.color('bold', `A bridge to ${provider.display_name}`))
  say(context, provider.description ?? '')
  const display_name = await ask(context, 'Name of the bridge', provider.display_name)
  const workspace_id = await chooseWorkspace(context)
  const routing_policy = await chooseRouting(context)
  const provider_config = { ...(await askConfig(context, provider)), ...(await askPersons(context)) }
  const body = {
    display_name,
    platform: provider.platform,
    extension_name: provider.extension_name,
    ...(workspace_id === undefined ? { scope: 'global' } : { scope: 'workspace', workspace_id }),
    enabled: false,
    dm_policy: 'allowlist',
    routing_policy,
    provider_config,
  }
  const { bridge } = (await client.request('POST', '/api/bridges', body)) as BridgeReply
  out.line('')
  out.line(`created ${bridge.id}`)
  if (provider.platform === 'slack') await tellSlackApp(context, bridge.id)
  await askSecrets(context, provider, bridge.id)
  await client.request('POST', `/api/bridges/${bridge.id}/enable`)
  const status = await awaitReady(context, bridge.id)
  return tellProofs(context, bridge.id, status)
}

const hasTerminal = (context: CommandContext): context is Terminal => context.terminal !== undefined

async function chooseProvider(
  context: Terminal,
  providers: readonly BridgeProviderInfo[],
  platform: string | undefined,
): Promise<BridgeProviderInfo> {
  const { fault, options } = context
  const extension = options.extension
  const found = providers.filter(
    one => one.platform === platform && (extension === undefined || one.extension_name === extension),
  )
  const [first] = found
  if (!first) {
    const known = [...new Set(providers.map(one => one.platform))].join(', ')
    return fault(
      'bridge_provider_not_found',
      `no running extension has the platform ${platform}; there are: ${known || 'none'}`,
      command('bridge providers'),
    )
  }
  if (found.length === 1) return first
  const at = await choose(
    context,
    'Which extension is to serve it?',
    found.map(one => one.extension_name),
  )
  return found[at] ?? first
}

/** Id of the workspace whose agent answers; undefined: a bridge that only sends. */
async function chooseWorkspace(context: Terminal): Promise<string | undefined> {
  const { client, options } = context
  const wanted = typeof options.workspace === 'string' ? options.workspace : ''
  for (;;) {
    const text = await ask(context, 'Workspace whose agent answers (- for none: it only sends)', wanted || '-')
    if (text === '-') return undefined
    try {
      const reply = (await client.request('GET', `/api/workspaces/${encodeURIComponent(text)}`)) as {
        workspace: { id: string }
      }
      return reply.workspace.id
    } catch (error) {
      context.out.line((error as Error).message)
    }
  }
}

async function chooseRouting(context: Terminal) {
  const answers = [
    'a person: each has a conversation of their own',
    'a room: those in it share one (direct messages are not answered)',
    'a thread: each thread of a room has its own (likewise)',
  ]
  const at = await choose(context, 'What is one conversation?', answers)
  return { include_peer: at === 0, include_group: at > 0, include_thread: at === 2 }
}

/** The settings that the schema of the adapter names: what it requires, then what has a default, where that is wanted. */
async function askConfig(context: Terminal, { config_schema: schema }: BridgeProviderInfo) {
  const config: Record<string, unknown> = {}
  const fields = fieldsOf(schema?.schema)
  const put = async (field: ConfigField) => {
    const value = await askField(context, field)
    if (value !== undefined) config[field.name] = value
  }
  for (const field of fields) if (field.isRequired) await put(field)
  const others = fields.filter(field => !field.isRequired)
  if (others.length === 0) return config
  const names = others.map(({ name }) => name).join(', ')
  say(context, `${others.length} more settings may be left as they are: ${names}`)
  if (!isYes(await ask(context, 'Go through them? (y/n)', 'y'))) return config
  for (const field of others) await put(field)
  return config
}

const isYes = (answer: string): boolean => answer.toLowerCase().startsWith('y')

async function askField(context: Terminal, field: ConfigField): Promise<unknown> {
  say(context, field.about)
  const choices = field.choices.length > 0 ? ` (${field.choices.join(', ')})` : ''
  for (;;) {
    const label = `${field.name}${choices}${field.isRequired ? '' : ', Enter to skip'}`
    const text = await ask(context, label, field.usual, field.isRequired)
    if (text === '') return undefined
    const value = typedValue(field, text)
    if (value !== undefined) return value
    context.out.line(`not of type ${field.type}${choices}`)
  }
}

/** Who may write direct messages, and whether they answer permission questions. */
async function askPersons(context: Terminal) {
  say(
    context,
    'Only these persons may write to the bot directly. Their ids are those of the platform, not names that anyone can take.',
  )
  const text = await ask(context, 'Ids of persons, separated by commas; Enter for nobody yet', '', false)
  const ids = text
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '')
  if (ids.length === 0) return {}
  const answer = await ask(context, 'May they answer permission questions of agents? (y/n)', 'n')
  return {
    dm: { allow_user_ids: ids },
    ...(isYes(answer) && { approvers: { user_ids: ids } }),
  }
}

async function tellSlackApp({ client, out, ...context }: Terminal, id: string): Promise<void> {
  const url = `/api/bridges/providers/slack/manifest?${new URLSearchParams({ instance: id })}`
  const { manifest } = (await client.request('GET', url)) as AppManifestReply
  out.line('')
  out.line('Create the app from its manifest, then install it to your team:')
  out.line(`  ${slackLink(manifest)}`)
  out.line(`To see or save the manifest: ${command('bridge manifest slack', id)} > slack-manifest.json`)
  await ask({ client, out, ...context }, 'Press Enter when the app is installed', '', false)
}

/** The page that makes an app from a manifest. */
const slackLink = (manifest: AppManifestReply['manifest']): string =>
  `https://api.slack.com/apps?${new URLSearchParams({ new_app: '1', manifest_json: JSON.stringify(manifest) })}`

async function askSecrets(
  context: Terminal,
  { secret_slots: slots = [] }: BridgeProviderInfo,
  id: string,
): Promise<void> {
  const { client, out, unseen } = context
  for (const { name, description = '', required = false } of slots) {
    out.line('')
    say(context, description)
    for (;;) {
      const value = await unseen?.(`${name}${required ? '' : ', Enter to skip'}: `)
      if (!value?.trim()) {
        if (value !== undefined && required) continue
        if (required) out.line(`Bind it later: ${command('bridge secret-bindings put', id, name)}`)
        break
      }
      try {
        const body = { kind: 'secret', secret_ref: refOf(id, name), secret_value: value.trim() }
        await client.request('PUT', `/api/bridges/${id}/secret-bindings/${encodeURIComponent(name)}`, body)
        break
      } catch (error) {
        out.line((error as Error).message)
      }
    }
  }
}

/** Follows the health of the bridge until it is ready or needs a person; its last status. */
async function awaitReady({ client, out, signal }: Terminal, id: string): Promise<string> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(READY_MS)])
  let status = ''
  out.line('')
  try {
    const query = new URLSearchParams({ bridge_ids: id })
    for await (const { data } of client.stream(`/api/bridges/health/stream?${query}`, { signal: limit })) {
      const health = (data as BridgeHealthChange).bridge_health[id]
      if (!health || health.status === status) continue
      status = health.status
      const why = health.degradation?.message
      out.line(`${status === 'ready' ? '✓' : '…'} ${status}${why ? `: ${why}` : ''}`)
      if (status !== 'starting' && status !== 'degraded') break
    }
  } catch (error) {
    if (!limit.aborted || signal.aborted) throw error
  }
  if (status !== 'ready' && limit.aborted) out.line('It has not connected yet; it goes on trying.')
  return status
}

async function tellProofs({ client, out }: Terminal, id: string, status: string): Promise<number | undefined> {
  const { checks } = (await client.request('POST', `/api/bridges/${id}/verify`)) as VerifyBridgeReply
  out.line('')
  for (const { check, status: found, remediation } of checks) {
    const mark = found === 'pass' ? '✓' : found === 'skipped' ? '-' : found === 'warn' ? '!' : '✗'
    for (const [n, line] of wrapped(`${mark} ${check}${remediation ? `: ${remediation}` : ''}`).entries())
      out.line(n === 0 ? line : `  ${line}`)
  }
  out.line('')
  out.line(`Verify it again at any time: ${command('bridge verify', id)}`)
  return status === 'ready' ? undefined : 1
}

/** One typed line. @param needed an empty answer without a default is asked for again */
async function ask({ out, terminal, fault }: Terminal, question: string, usual = '', needed = true): Promise<string> {
  for (;;) {
    out.text(`${question}${usual === '' ? '' : ` [${usual}]`}: `)
    const line = await new Promise<string | undefined>(resolve => {
      const quiet = terminal.onLine(typed => {
        quiet()
        resolve(typed)
      })
    })
    if (line === undefined) return fault('interrupted', 'the input ended before the setup did')
    const answer = line.trim() || usual
    if (answer !== '' || !needed) return answer
  }
}

/** Index of the answer that is chosen; the first for Enter alone. */
async function choose(context: Terminal, question: string, answers: readonly string[]): Promise<number> {
  context.out.line('')
  context.out.line(question)
  for (const [at, text] of answers.entries()) context.out.line(`  ${at + 1}  ${text}`)
  for (;;) {
    const at = Number(await ask(context, `1-${answers.length}`, '1')) - 1
    if (answers[at] !== undefined) return at
  }
}

function say({ out }: CommandContext, text: string): void {
  for (const line of wrapped(text)) out.line(line)
}

/** A text in lines of a small terminal. */
function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/).filter(word => word !== '')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
