import type { CommandContext } from '../../../kernel/plugin.js'
import type {
  Attention,
  PresetEnablement,
  PresetReply,
  PresetRules,
  PresetTarget,
} from '../../../schemas/notifications.js'

const urlOf = (name = '') => `/api/notifications/presets/${encodeURIComponent(name)}`

const listOf = (value: unknown): string[] =>
  String(value)
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)

/** Parses `team=group:#ops` or just `team`; several are separated by commas. */
const targetsOf = (value: unknown): PresetTarget[] =>
  listOf(value).map(text => {
    const at = text.indexOf('=')
    return at < 0 ? { bridge_id: text } : { bridge_id: text.slice(0, at), canonical_route: text.slice(at + 1) }
  })

/** Merges rules from the options into the preset's existing rules. */
function rulesOf({ options, fault }: CommandContext, known: PresetRules | undefined): PresetRules | undefined {
  const { cooldown, quiet } = options
  const [from = '', to = ''] = String(quiet ?? '').split('-')
  const timeZone = options['time-zone'] ?? known?.quiet_hours?.time_zone
  if (quiet !== undefined && quiet !== 'off' && (from === '' || to === ''))
    return fault('usage', '--quiet is two times of day, 22:00-07:00, or off')
  if (quiet !== undefined && quiet !== 'off' && timeZone === undefined)
    return fault('usage', 'quiet hours need a time zone: give --time-zone Europe/Berlin')
  const { quiet_hours: night, ...others } = known ?? {}
  const hours =
    quiet === 'off'
      ? undefined
      : quiet !== undefined
        ? { from: from.trim(), to: to.trim(), time_zone: String(timeZone) }
        : night && { ...night, time_zone: String(timeZone) }
  const rules: PresetRules = {
    ...others,
    ...(options['after-failures'] !== undefined && { after_failures: Number(options['after-failures']) }),
    ...(options['only-on-change'] !== undefined && { only_on_change: options['only-on-change'] === true }),
    ...(cooldown !== undefined && { cooldown: String(cooldown) }),
    ...(options['remind-after'] !== undefined && { remind_after: String(options['remind-after']) }),
    ...(hours && { quiet_hours: hours }),
  }
  return Object.keys(rules).length > 0 || known ? rules : undefined
}

function show({ out }: CommandContext, reply: PresetReply, text: string): void {
  out.id(reply.preset.name)
  if (out.json) out.value(reply)
  else out.line(text)
}

/** The command that makes an enabled preset send something. */
const silent = (name: string, targets: readonly PresetTarget[]) =>
  targets.length > 0 ? '' : `; it sends nothing yet: svc notifications preset update ${name} --targets <bridge>`

/** `svc notifications preset create <name>` */
export async function runCreate(context: CommandContext): Promise<void> {
  const { args, options, client, fault } = context
  const { name = '' } = args
  if (options.events === undefined) return fault('usage', 'give the events: --events task.run_failed,provider.*')
  const rules = rulesOf(context, undefined)
  const body = {
    name,
    events: listOf(options.events),
    targets: options.targets === undefined ? [] : targetsOf(options.targets),
    ...(options.filter !== undefined && { filter: String(options.filter) }),
    ...(options.enable === true && { enabled: true }),
    ...(rules && { rules }),
  }
  const reply = (await client.request('POST', '/api/notifications/presets', body)) as PresetReply
  const { enabled, targets } = reply.preset
  const next = enabled ? silent(name, targets) : `; enable it: svc notifications preset enable ${name}`
  show(context, reply, `created ${name}${next}`)
}

/** `svc notifications preset update <name>` */
export async function runUpdate(context: CommandContext): Promise<void> {
  const { args, options, client } = context
  const { name = '' } = args
  const { preset } = (await client.request('GET', urlOf(name))) as PresetReply
  const rules = rulesOf(context, preset.rules)
  const body = {
    ...(options.events !== undefined && { events: listOf(options.events) }),
    ...(options.filter !== undefined && { filter: String(options.filter) }),
    ...(options.targets !== undefined && { targets: targetsOf(options.targets) }),
    ...(rules && { rules }),
  }
  show(context, (await client.request('PUT', urlOf(name), body)) as PresetReply, `changed ${name}`)
}

async function runSwitch({ args, options, client, out }: CommandContext, enabled: boolean): Promise<void> {
  const { name = '' } = args
  const body = { enabled, profile: options.profile === undefined ? 'default' : String(options.profile) }
  const reply = (await client.request('PUT', `${urlOf(name)}/enablement`, body)) as PresetEnablement
  if (out.json) return out.value(reply)
  out.id(name)
  const { preset } = (await client.request('GET', urlOf(name))) as PresetReply
  const hint = enabled ? silent(name, preset.targets) : ''
  out.line(
    `${enabled ? 'enabled' : 'disabled'} ${name}${body.profile === 'default' ? '' : ` in ${body.profile}`}${hint}`,
  )
}

/** `svc notifications preset enable <name>` */
export const runEnable = (context: CommandContext) => runSwitch(context, true)
/** `svc notifications preset disable <name>` */
export const runDisable = (context: CommandContext) => runSwitch(context, false)

/** `svc attention ack [id]`: acknowledges the entries currently in the list. */
export async function runAcknowledge({ args, options, client, out }: CommandContext): Promise<void> {
  const query = new URLSearchParams()
  for (const name of ['surface', 'workspace', 'profile'])
    if (options[name] !== undefined) query.set(name, String(options[name]))
  const text = query.size === 0 ? '' : `?${query}`
  const list = (await client.request('GET', `/api/notifications/attention${text}`)) as Attention
  const id = args.id === undefined ? {} : { id: args.id }
  const body = { snapshot: list.snapshot, ...id }
  await client.request('POST', `/api/notifications/attention/acknowledge${text}`, body)
  const acknowledged = args.id === undefined ? list.total : 1
  if (out.json) return out.value({ acknowledged })
  out.line(
    acknowledged === 0
      ? 'nothing to acknowledge'
      : acknowledged === 1
        ? 'acknowledged 1 item'
        : `acknowledged ${acknowledged} items`,
  )
}
