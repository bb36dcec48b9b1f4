import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import type {
  AppManifestReply,
  BridgeHealthChange,
  BridgeProviderInfo,
  BridgeProvidersReply,
  BridgeReply,
  VerifyBridgeReply,
} from '../../../../schemas/bridges.js'
import { aboutOf, type ConfigField, fieldsOf, typedValue } from './config-fields.js'
import { hasTerminal, Interview } from './interview.js'
import { refOf } from './secrets-ref.js'

/** Milliseconds for an adapter to connect; after that the setup continues without it. */
const READY_MS = 60_000

/** `svc bridge setup <platform>`: asks for everything that a bridge needs, starts it and verifies it. */
export async function setUp(context: CommandContext): Promise<number | undefined> {
  const { fault } = context
  if (!hasTerminal(context))
    return fault(
      'terminal_missing',
      'the setup asks questions and needs a terminal',
      command('bridge create', '--help'),
    )
  const interview = new Interview(context)
  interview.left = { text: 'nothing was created', next: command('bridge setup', context.args.platform ?? '') }
  return interview.run(() => converse(interview))
}

async function converse(interview: Interview): Promise<number | undefined> {
  const { args, client, out } = interview.context
  const { providers } = (await client.request('GET', '/api/bridges/providers')) as BridgeProvidersReply
  const provider = await chooseProvider(interview, providers, args.platform)
  interview.line(out.color('bold', `A bridge to ${provider.display_name}`))
  interview.say(provider.description ?? '')
  interview.line()
  const display_name = await interview.ask('Name of the bridge', provider.display_name)
  const workspace_id = await chooseWorkspace(interview)
  const answers = workspace_id !== undefined
  const conversations = answers ? await chooseConversations(interview, provider) : ALL_IN_ONE
  const { routing_policy } = conversations
  const provider_config = {
    ...(await askConfig(interview, provider)),
    ...conversations.provider_config,
    ...(answers ? await askPersons(interview, provider) : {}),
  }
  const body = {
    display_name,
    platform: provider.platform,
    extension_name: provider.extension_name,
    ...(answers ? { scope: 'workspace', workspace_id } : { scope: 'global' }),
    enabled: false,
    dm_policy: 'allowlist',
    routing_policy,
    provider_config,
  }
  const { bridge } = (await client.request('POST', '/api/bridges', body)) as BridgeReply
  const { id } = bridge
  interview.line()
  interview.line(`created ${id}`)
  interview.left = {
    text: `the bridge ${id} stays, disabled: bind its secrets (${command('bridge secret-bindings put', id, placeholder('slot'))}), then enable it`,
    next: command('bridge enable', id),
  }
  if (provider.platform === 'slack') await tellSlackApp(interview, id)
  await askSecrets(interview, provider, id)
  await client.request('POST', `/api/bridges/${id}/enable`)
  interview.left = { text: `the bridge ${id} is enabled`, next: command('bridge verify', id) }
  const status = await awaitReady(interview, id)
  return tellProofs(interview, id, status)
}

async function chooseProvider(
  interview: Interview,
  providers: readonly BridgeProviderInfo[],
  platform: string | undefined,
): Promise<BridgeProviderInfo> {
  const { fault, options } = interview.context
  const extension = options.extension
  const found = providers.filter(
    one => one.platform === platform && (extension === undefined || one.extension_name === extension),
  )
  const [first] = found
  if (!first) {
    const known = [...new Set(providers.map(one => one.platform))].join(', ')
    return fault(
      'bridge_provider_not_found',
      `no running extension provides the platform ${platform}; available: ${known || 'none'}`,
      command('bridge providers'),
    )
  }
  if (found.length === 1) return first
  const at = await interview.choose(
    'Which extension should serve it?',
    found.map(one => one.extension_name),
  )
  return found[at] ?? first
}

/** Id of the workspace whose agent answers; undefined for a bridge that only sends. */
async function chooseWorkspace(interview: Interview): Promise<string | undefined> {
  const { client, cwd, options } = interview.context
  const wanted = typeof options.workspace === 'string' ? await rootOf(client, options.workspace) : cwd
  interview.line()
  interview.say(
    'An agent of a workspace answers messages to the bot. A folder that is not a workspace yet becomes one.',
  )
  for (;;) {
    const text = await interview.ask('Workspace or folder (- for none: the bridge only sends)', wanted)
    if (text === '-') return undefined
    try {
      const isFolder = /^(?:[./]|$)/.test(text)
      const found = (
        isFolder
          ? await client.request('POST', '/api/workspaces/place', { path: path.resolve(cwd, text) })
          : await client.request('GET', `/api/workspaces/${encodeURIComponent(text)}`)
      ) as {
        workspace: { id: string; name: string; root_dir: string }
        registered?: boolean
      }
      const { id, name, root_dir } = found.workspace
      if (found.registered) interview.say(`registered ${root_dir} as workspace ${name}`)
      return id
    } catch (error) {
      interview.say(messageOf(error))
    }
  }
}

/** Folder of a workspace, which is more familiar to people than its id. */
async function rootOf(client: CommandContext['client'], reference: string): Promise<string> {
  try {
    const found = await client.request('GET', `/api/workspaces/${encodeURIComponent(reference)}`)
    return (found as { workspace: { root_dir: string } }).workspace.root_dir
  } catch {
    // The person chooses another one.
    return reference
  }
}

/** Settings of a bridge without conversations. */
const ALL_IN_ONE = {
  routing_policy: { include_peer: true, include_group: false, include_thread: false },
  provider_config: {},
}

/** Choices of how conversations are separated. */
const SHARED = [
  { by: 'room', text: 'a room: all messages in it are one conversation' },
  { by: 'thread', text: 'a thread: each thread is a conversation, and the rest of the room is another' },
  { by: 'person', text: 'not shared: each person has their own conversation in each room' },
] as const

/** Asks how conversations are separated. In every choice, direct messages are separate per person. */
async function chooseConversations(interview: Interview, { threads }: BridgeProviderInfo) {
  const shared = SHARED.filter(({ by }) => by !== 'thread' || threads)
  const at = await interview.choose(
    'Who shares a conversation with the agent? Direct messages are never shared.',
    shared.map(({ text }) => text),
  )
  const by = shared[at]?.by
  return {
    routing_policy: { include_peer: by === 'person', include_group: true, include_thread: by === 'thread' },
    // With the fallback, members that an event lacks are ignored instead of required.
    provider_config: { routing: { fallback: true } },
  }
}

/** Asks for the settings in the adapter's schema: required ones, then the others on request. */
async function askConfig(interview: Interview, { config_schema: schema }: BridgeProviderInfo) {
  const config: Record<string, unknown> = {}
  const fields = fieldsOf(schema?.schema)
  const put = async (field: ConfigField) => {
    interview.line()
    const value = await askField(interview, field)
    if (value !== undefined) config[field.name] = value
  }
  for (const field of fields) if (field.isRequired || field.isAsked) await put(field)
  const others = fields.filter(field => !field.isRequired && !field.isAsked)
  if (others.length === 0) return config
  const names = others.map(({ name }) => name).join(', ')
  interview.line()
  interview.say(`${others.length} more settings have defaults: ${names}`)
  if (!(await interview.confirm('Go through them?', false))) return config
  for (const field of others) await put(field)
  return config
}

async function askField(interview: Interview, field: ConfigField): Promise<unknown> {
  interview.say(field.about)
  const choices = field.choices.length > 0 ? ` (${field.choices.join(', ')})` : ''
  const skip = field.isRequired ? '' : field.byDefault === '' ? ', Enter to skip' : `, Enter for ${field.byDefault}`
  for (;;) {
    const label = `${field.name}${field.type === 'list' ? ', separated by commas' : ''}${choices}${skip}`
    const text = await interview.ask(label, field.usual, field.isRequired)
    if (text === '') return undefined
    const value = typedValue(field, text)
    if (value !== undefined) return value
    interview.say(`not of type ${field.type}${choices}`)
  }
}

/** Asks who may write direct messages and answer permission questions. */
async function askPersons(interview: Interview, { config_schema: schema }: BridgeProviderInfo) {
  interview.line()
  interview.say('Only allowed persons may send direct messages to the bot.')
  interview.say(
    aboutOf(schema?.schema, 'dm', 'allow_user_ids') ?? 'Use the user ids of the platform, not display names.',
  )
  const text = await interview.ask('User ids, separated by commas; Enter for none', '', false)
  const ids = text
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '')
  if (ids.length === 0) return {}
  const approve = await interview.confirm('May they answer permission questions of agents?', false)
  return {
    dm: { allow_user_ids: ids },
    ...(approve && { approvers: { user_ids: ids } }),
  }
}

async function tellSlackApp(interview: Interview, id: string): Promise<void> {
  const url = `/api/bridges/providers/slack/manifest?${new URLSearchParams({ instance: id })}`
  const { manifest } = (await interview.context.client.request('GET', url)) as AppManifestReply
  interview.line()
  interview.line('Open this link to create the Slack app with all its settings:')
  interview.line()
  interview.line(slackLink(manifest))
  interview.line()
  for (const step of [
    '  1. Open the link, choose the Slack workspace, Next, Create.',
    '  2. Install App: Install to Workspace. It shows the bot token, xoxb-…',
    '  3. Basic Information, App-Level Tokens: Generate, with the scope connections:write. It shows the app token, xapp-…',
    'Without the link: api.slack.com/apps, Create New App, From a manifest, and paste what this prints in another terminal:',
  ])
    interview.say(step, step.startsWith(' ') ? 5 : 0)
  interview.line(`  ${command('bridge manifest slack', id)}`)
  await interview.ask('Press Enter when you have both tokens', '', false)
}

/** Address of the page that creates an app from a manifest. */
const slackLink = (manifest: AppManifestReply['manifest']): string =>
  `https://api.slack.com/apps?${new URLSearchParams({ new_app: '1', manifest_json: JSON.stringify(manifest) })}`

async function askSecrets(
  interview: Interview,
  { secret_slots: slots = [] }: BridgeProviderInfo,
  id: string,
): Promise<void> {
  const { client } = interview.context
  for (const { name, description = '', required = false } of slots) {
    interview.line()
    interview.say(description)
    for (;;) {
      const value = await interview.unseen(`${name} (not shown)${required ? '' : ', Enter to skip'}: `)
      if (!value?.trim()) {
        if (value !== undefined && required) continue
        if (required) interview.say(`Bind it later: ${command('bridge secret-bindings put', id, name)}`)
        break
      }
      try {
        const body = { kind: 'secret', secret_ref: refOf(id, name), secret_value: value.trim() }
        await client.request('PUT', `/api/bridges/${id}/secret-bindings/${encodeURIComponent(name)}`, body)
        break
      } catch (error) {
        interview.say(messageOf(error))
      }
    }
  }
}

/** Follows the health of the bridge until it is ready or needs a person; returns the last status. */
async function awaitReady(interview: Interview, id: string): Promise<string> {
  const { client, signal } = interview.context
  const limit = AbortSignal.any([signal, AbortSignal.timeout(READY_MS)])
  let status = ''
  interview.line()
  interview.line('Waiting until it is connected, at most a minute:')
  try {
    const query = new URLSearchParams({ bridge_ids: id })
    for await (const { data } of client.stream(`/api/bridges/health/stream?${query}`, { signal: limit })) {
      const health = (data as BridgeHealthChange).bridge_health[id]
      if (!health || health.status === status) continue
      status = health.status
      const why = health.degradation?.message
      interview.say(`${status === 'ready' ? '✓' : '…'} ${status}${why ? `: ${why}` : ''}`, 2)
      if (status !== 'starting' && status !== 'degraded') break
    }
  } catch (error) {
    if (!limit.aborted || signal.aborted) throw error
  }
  if (status !== 'ready' && limit.aborted) interview.line('It has not connected yet; it keeps trying.')
  return status
}

async function tellProofs(interview: Interview, id: string, status: string): Promise<number | undefined> {
  const { checks } = (await interview.context.client.request('POST', `/api/bridges/${id}/verify`)) as VerifyBridgeReply
  interview.line()
  for (const { check, status: found, remediation } of checks) {
    const mark = found === 'pass' ? '✓' : found === 'skipped' ? '-' : found === 'warn' ? '!' : '✗'
    interview.say(`${mark} ${check}${remediation ? `: ${remediation}` : ''}`, 2)
  }
  interview.line()
  interview.say(`Verify it again at any time: ${command('bridge verify', id)}`)
  return status === 'ready' ? undefined : 1
}

const messageOf = (error: unknown): string => (error as Error).message
