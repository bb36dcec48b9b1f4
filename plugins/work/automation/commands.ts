import type { CommandContext } from '../../../kernel/plugin.js'
import type { JobReply, TriggerReply } from '../../../schemas/automation.js'

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
