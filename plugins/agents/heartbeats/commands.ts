import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { HeartbeatStatus, WakeDecision, WakeReply } from '../../../schemas/agents/sidecars.js'
import type { WakeEvent } from '../../../schemas/sessions/inspection.js'

const eventColumns = columnsOf<WakeEvent>()([
  { of: 'created_at~ago', header: 'When' },
  'result',
  'reason',
  { of: 'source', header: 'By' },
  { of: 'session_id', header: 'Session' },
])
const COLORS = { sent: 'green', coalesced: 'green', skipped: 'yellow', rate_limited: 'yellow', failed: 'red' } as const

/** `svc agent heartbeat status <name>` */
export async function runStatus(context: CommandContext): Promise<void> {
  const { args, options, client, out } = context
  const query = new URLSearchParams({
    include_session_health: 'true',
    include_recent_wake_events: 'true',
    ...(await workspaceOf(context, options.session)),
    ...(options.session !== undefined && { session_id: String(options.session) }),
  })
  const status = (await client.request('GET', `${urlOf(args.name)}/status?${query}`)) as HeartbeatStatus
  if (out.json) return out.value(status)
  if (!status.present) {
    out.line(`agent ${args.name} has no HEARTBEAT.md, so its sessions are not woken`)
    out.line(out.color('dim', `next: ${command('agent heartbeat write', args.name ?? '', '--file', 'HEARTBEAT.md')}`))
    return
  }
  const { preferences, wake_state: state, session_health: health, wake_events: events = [], diagnostics = [] } = status
  const word = status.active ? out.color('green', 'active') : out.color('yellow', status.validation_status)
  const every = status.valid ? `, every ${preferences.min_interval}` : ''
  out.line(`the heartbeat of ${args.name} is ${word}${every}`)
  if (status.validation_status === 'invalid')
    out.line(out.color('dim', `next: ${command('agent heartbeat inspect', args.name ?? '')}`))
  const lines = [
    ['Session', state?.session_id],
    ['Health', health && `${health.health}, ${health.state}`],
    ['Last sent', state?.last_wake_at],
    ['Next', state?.next_allowed_at],
    ['Last', state && `${state.last_result} (${state.last_reason})`],
  ]
  for (const [title, value] of lines) if (value) out.line(`  ${`${title}:`.padEnd(10)} ${value}`)
  for (const { severity, message } of diagnostics) out.line(`  ${severity}: ${message}`)
  out.table(events, eventColumns, `no wake-up yet; ${command('agent heartbeat wake', args.name ?? '')}`)
}

/**
 * `svc agent heartbeat wake <name> [session]`: exits with 5 if the session cannot be woken, with 1 if the policy
 * refuses.
 */
export async function runWake(context: CommandContext): Promise<number> {
  const { args, options, client, out } = context
  const body = {
    session_id: args.session ?? '',
    source: 'manual',
    ...(options['dry-run'] === true && { dry_run: true }),
    ...(await workspaceOf(context, args.session)),
  }
  const { reply, conflict } = await client.request('POST', `${urlOf(args.name)}/wake`, body).then(
    answer => ({ reply: answer as WakeReply, conflict: false }),
    error => {
      const refused = (error as { more?: { body?: Partial<WakeReply> } }).more?.body
      if (refused?.decision === undefined) throw error
      return { reply: refused as WakeReply, conflict: true }
    },
  )
  const { result, reason, diagnostics = [], synthetic_prompt_id: turn } = reply.decision
  if (out.json) out.value(reply)
  else {
    const would = options['dry-run'] === true ? 'would be ' : ''
    out.line(`${would}${out.color(COLORS[result], result)}: ${reason}${turn === undefined ? '' : ` (${turn})`}`)
    for (const { severity, message } of diagnostics) out.line(`  ${severity}: ${message}`)
    out.line(out.color('dim', `next: ${nextStep(reply.decision, args)}`))
  }
  if (result === 'sent' || result === 'coalesced') return 0
  return conflict ? 5 : 1
}

function nextStep({ result, reason }: WakeDecision, { name = '', session }: CommandContext['args']): string {
  if (result === 'sent' && session !== undefined) return command('session events', session, '--follow')
  if (reason === 'heartbeat_no_policy') return command('agent heartbeat write', name, '--file', 'HEARTBEAT.md')
  if (reason === 'heartbeat_invalid') return command('agent heartbeat inspect', name)
  if (reason === 'heartbeat_no_eligible_session') return command('session new', '--agent', name)
  if (reason === 'session_not_found') return command('session list', '--agent', name)
  return command('agent heartbeat status', name)
}

const urlOf = (name = '') => `/api/agents/${encodeURIComponent(name)}/heartbeat`

/** The workspace of a named session, else the current one. */
async function workspaceOf(
  { client, options: { workspace } }: CommandContext,
  session: unknown,
): Promise<{ workspace_id?: string }> {
  const here = typeof workspace === 'string' ? { workspace_id: workspace } : {}
  if (session === undefined) return here
  const at = `/api/sessions/${encodeURIComponent(String(session))}/owner`
  const owner = client.request('GET', at) as Promise<{ workspace_id: string }>
  // For an unknown session, the wake-up request reports the error.
  return owner.then(({ workspace_id }) => ({ workspace_id })).catch(() => here)
}
