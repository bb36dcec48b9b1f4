import type { Tx } from '../../../../kernel/plugin.js'
import type { PresetRules } from '../../../../schemas/notifications.js'
import { paceOf } from '../presets/rules.js'
import { type PaceRow, paces } from '../tables.js'
import type { Happening } from './happening.js'

/** Why an event is not sent. */
export type Held = 'filtered' | 'too_few_failures' | 'unchanged' | 'cooldown'

type Key = Pick<PaceRow, 'preset' | 'target' | 'subject'>

/** Counts an event of a subject and checks whether the rules let it be sent. Failures count even if filtered out. */
export function paced(
  t: Tx,
  key: Pick<Key, 'preset' | 'target'>,
  rules: PresetRules | undefined,
  happening: Happening,
  { now, passes }: { readonly now: number; readonly passes: boolean },
): Held | undefined {
  if (rules === undefined) return passes ? undefined : 'filtered'
  const { subject, type, outcome } = happening
  const row = { ...key, subject }
  const before = paces.get(t, row)
  const pace = paceOf(rules, subject)
  const count = before?.failures ?? 0
  const failures = outcome === 'failure' ? count + 1 : outcome === 'success' ? 0 : count
  const held = heldBy()
  const sent = held === undefined ? now : before?.sent_at
  const last = passes || !before ? type : before.last_event
  paces.replace(t, { ...row, failures, last_event: last, at: now, ...(sent !== undefined && { sent_at: sent }) })
  return held

  function heldBy(): Held | undefined {
    if (!passes) return 'filtered'
    if (outcome === 'failure' && failures < pace.afterFailures) return 'too_few_failures'
    // Do not report recovery from failures that were never reported.
    if (outcome === 'success' && pace.afterFailures > 1 && count > 0 && count < pace.afterFailures)
      return 'too_few_failures'
    if (pace.onlyOnChange && before?.sent_at !== undefined && before.last_event === type) return 'unchanged'
    if (pace.cooldown > 0 && before?.sent_at !== undefined && now - before.sent_at < pace.cooldown) return 'cooldown'
    return undefined
  }
}
