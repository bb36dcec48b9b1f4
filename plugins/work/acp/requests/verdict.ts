import type { PermissionMode } from '../../../agents/agents/api.js'
import { permissionDenied } from '../protocol/error.js'
import * as rules from './permission-rules.js'

/** A decision about a request, and its origin. */
export interface Verdict {
  readonly decision: rules.Decision | 'cancelled'
  readonly by: 'mode' | 'limit' | 'rights' | 'workspace' | 'remembered' | 'person' | 'timeout' | 'hook' | 'cancel'
  readonly note?: string
}

/** The input of a decision. */
export interface Judged {
  readonly mode: PermissionMode
  readonly action: rules.WantedAction
  /** The missing right. */
  readonly lacking: string | undefined
  /** Reason for which no answer can allow it: a path cannot be resolved, or belongs to the daemon. */
  readonly impossible: string | undefined
  /** One of its paths is outside of the workspace. */
  readonly isOutside: boolean
  /** An earlier "always" answer. */
  readonly remembered: rules.Decision | undefined
  /** A person can answer before the timeout. */
  readonly isAttended: boolean
}

/** The decision without a person; undefined: a person has to be asked. */
export function automaticVerdict(judged: Judged): Verdict | undefined {
  const { mode, action, lacking, impossible, isOutside, remembered, isAttended } = judged
  const reject = (by: Verdict['by'], note: string): Verdict => ({ decision: 'reject-once', by, note })
  if (lacking !== undefined)
    return reject('rights', `tool_not_granted: this session was spawned without the tool ${lacking}`)
  if (impossible !== undefined) return reject('workspace', impossible)
  const byMode = rules.decideByMode(mode, action.kind, isOutside)
  if (byMode !== 'ask') return { decision: byMode === 'allow' ? 'allow-once' : 'reject-once', by: 'mode' }
  if (remembered) return { decision: remembered, by: 'remembered' }
  const nobody = mode === 'approve-all' && !isAttended
  return nobody ? reject('workspace', 'it changes something outside the workspace, and no one can be asked') : undefined
}

const DOING: Readonly<Record<string, string>> = { read: 'reading', edit: 'writing', execute: 'running commands' }

/** The response to a refused client method. */
export function refusedMethod({ by, decision, note }: Verdict, mode: PermissionMode, kind: string) {
  const reasons: { readonly [B in Verdict['by']]?: string } = {
    mode: `${DOING[kind] ?? kind} is not allowed in mode ${mode}`,
    person: 'a person rejected it',
    remembered: 'a person rejected it for this session',
    timeout: 'nobody answered',
    cancel: 'the turn ended before it was answered',
  }
  const why = note ?? (decision === 'cancelled' ? reasons.cancel : reasons[by]) ?? 'it was rejected'
  return permissionDenied(`permission denied: ${why}`)
}
