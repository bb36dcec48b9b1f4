import { shellWord } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { JobReply, TestTriggerReply, TriggerReply } from '../../../schemas/automation.js'

export { runSimulate } from './simulate/commands.js'
export { runAccept, runDismiss, runListSuggestions, runPropose } from './suggestions/commands.js'

/** `svc automation jobs enable <id>`. */
export const enableJob = (context: CommandContext) => setEnabled(context, 'job', true)
/** `svc automation jobs disable <id>`. */
export const disableJob = (context: CommandContext) => setEnabled(context, 'job', false)
/** `svc automation triggers enable <id>`. */
export const enableTrigger = (context: CommandContext) => setEnabled(context, 'trigger', true)
/** `svc automation triggers disable <id>`. */
export const disableTrigger = (context: CommandContext) => setEnabled(context, 'trigger', false)

async function setEnabled(
  { args, client, out }: CommandContext,
  noun: 'job' | 'trigger',
  enabled: boolean,
): Promise<void> {
  const url = `/api/automation/${noun}s/${encodeURIComponent(args.id ?? '')}`
  const reply = (await client.request('PATCH', url, { enabled })) as JobReply | TriggerReply
  if (out.json) return out.value(reply)
  const { id, name, ...more } = 'job' in reply ? reply.job : reply.trigger
  out.id(id)
  const next = enabled && 'next_run' in more && more.next_run ? `; next run ${more.next_run}` : ''
  out.line(`${enabled ? 'enabled' : 'disabled'} ${noun} ${name}${next}`)
}

/** `svc automation triggers test <id>`: the secret stays in the daemon, which signs the delivery. */
export async function runTestTrigger({ args, options, client, out }: CommandContext): Promise<void> {
  const url = `/api/automation/triggers/${encodeURIComponent(args.id ?? '')}/test`
  const body = options.body === undefined ? {} : { body: options.body }
  const { delivery } = (await client.request('POST', url, body)) as TestTriggerReply
  const { daemon } = (await client.request('GET', '/api/status')) as {
    daemon: { http_host: string; http_port: number; http_off?: string }
  }
  const host = daemon.http_host.includes(':') ? `[${daemon.http_host}]` : daemon.http_host
  const full = `http://${host}:${daemon.http_port}${delivery.path}`
  const headers = Object.entries(delivery.headers).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`)
  // --data-raw: curl reads a file for any other text that begins with @.
  const parts = ['curl -sS --fail-with-body', ...headers, `--data-raw ${shellWord(delivery.body)}`, shellWord(full)]
  const curl = parts.join(' \\\n  ')
  if (out.json) return out.value({ ...delivery, url: full, curl })
  out.line(`URL: ${full}`)
  if (daemon.http_off !== undefined) out.line(out.color('yellow', `nothing is served there: ${daemon.http_off}`))
  out.line(
    out.color('dim', `Run this to send a delivery${delivery.expires_at ? `, until ${delivery.expires_at}` : ''}:`),
  )
  for (const line of curl.split('\n')) out.line(line)
}
