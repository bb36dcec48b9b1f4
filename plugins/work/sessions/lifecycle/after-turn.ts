import type { Tx } from '../../../../kernel/plugin.js'
import type { AgentFailure } from '../../acp/api.js'
import { attentionOfEnd } from '../attention/attention.js'
import type { SessionsContext } from '../context.js'
import { Digest } from '../journal/digest.js'
import type { SessionChange, SessionRow } from '../table.js'
import type { Turn } from '../turn/turn.js'
import { titleOf } from './title.js'

/** The row change after a turn. `title`: a title from the agent. */
export function changeAfter(
  context: SessionsContext,
  row: SessionRow,
  turn: Turn,
  digest: Digest | undefined,
  title: string | undefined,
): SessionChange {
  return {
    last_activity_at: turn.lastActivityAt,
    usage: digest?.toString() ?? null,
    ...attentionOfEnd(context, row),
    ...titleOf(row, title ?? turn.request.text, context.kernel.redact),
  }
}

/** Adds the usage of a turn to its day, once: in the transaction that ends it. `row`: as it was before. */
export function counting(context: SessionsContext, row: SessionRow, digest: Digest | undefined): (t: Tx) => void {
  const before = Digest.stored(row.usage).usage
  return t => digest && context.usageDays.add(t, row, before, digest.usage)
}

/** Warning for a process ended after a turn while its session stays: an agent reads its login or key only when it starts. */
export const endedBecause = (failure: AgentFailure | undefined): readonly [warning: string, text: string] =>
  failure?.wantsLogin
    ? ['login_wanted', 'the agent requires a login; the next prompt starts it again']
    : ['cancel_ignored', 'the agent did not react to the cancel; its process was killed']
