import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { VerifyAuditReply } from '../../../schemas/daemon/audit.js'

/** `svc audit verify`; returns the exit code: 1 when the chain is broken. */
export async function run({ client, out, options }: CommandContext): Promise<number> {
  const query = typeof options.expect === 'string' ? `?expect=${encodeURIComponent(options.expect)}` : ''
  const reply = (await client.request('GET', `/api/audit/verify${query}`)) as VerifyAuditReply
  if (out.json) out.value(reply)
  else show(reply, out)
  return reply.status === 'ok' ? 0 : 1
}

function show({ checked, first, last, head, broken }: VerifyAuditReply, out: CommandContext['out']): void {
  if (broken) {
    out.line(out.color('red', `the audit is broken at entry ${broken.seq}: ${broken.problem}`))
    out.line(`${checked} entries before it verified, none altered`)
  } else if (last === undefined) out.line('the audit is empty')
  else {
    out.line(`${checked} entries verified (${first} to ${last}), none altered`)
    out.line(
      out.color(
        'dim',
        `keep this hash on another machine and check it with: ${command('audit verify', '--expect', head ?? '')}`,
      ),
    )
  }
}
