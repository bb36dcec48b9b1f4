import type { Tx } from '../../../../kernel/plugin.js'
import type { AgentFailure } from '../agent/failure.js'
import { attentionOfEnd } from '../attention/attention.js'
import type { SessionsContext } from '../context.js'
import { Digest } from '../journal/digest.js'
import type { SessionChange, SessionRow } from '../table.js'
import type { Turn } from '../turn/turn.js'
import { titleOf } from './title.js'

/** What the row of a session says after a turn. `title`: one that the agent gave. */
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

/** Counts what a turn used into its day, once: in the transaction that ends it. `row`: as it was before. */
export function counting(context: SessionsContext, row: SessionRow, digest: Digest | undefined): (t: Tx) => void {
  const before = Digest.stored(row.usage).usage
  return t => digest && context.usageDays.add(t, row, before, digest.usage)
}

/** Why a process was ended after a turn, and its session not: an agent reads its login, or its key, when it starts. */
export const endedBecause = (failure: AgentFailure | undefined): readonly [warning: string, text: string] =>
  failure?.wantsLogin
    ? ['login_wanted', 'the agent wants a login; the next prompt starts it again']
    : ['cancel_ignored', 'the agent did not heed the cancel; its process was ended']
