import type { PermissionMode } from '../../agents/api.js'
import { permissionDenied } from '../acp/error.js'
import * as rules from './permission-rules.js'

/** What was decided about a request, and by whom or what. */
export interface Verdict {
  readonly decision: rules.Decision | 'cancelled'
  readonly by: 'mode' | 'limit' | 'rights' | 'workspace' | 'remembered' | 'person' | 'timeout' | 'hook' | 'cancel'
  readonly note?: string
}

/** What is known of a request when it is judged. */
export interface Judged {
  readonly mode: PermissionMode
  readonly action: rules.WantedAction
  /** A right that it needs and the session lacks. */
  readonly lacking: string | undefined
  /** In canonical form; undefined: one of them is outside. */
  readonly places: readonly string[] | undefined
  /** An "always" answer of before. */
  readonly remembered: rules.Decision | undefined
}

/** What is decided without a person; undefined: one is to be asked. */
export function automaticVerdict({ mode, action, lacking, places, remembered }: Judged): Verdict | undefined {
  const reject = (by: Verdict['by'], note: string): Verdict => ({ decision: 'reject-once', by, note })
  if (lacking !== undefined)
    return reject('rights', `tool_not_granted: this session was spawned without the tool ${lacking}`)
  if (!places) return reject('workspace', 'it names a path outside of the workspace')
  const byMode = rules.decideByMode(mode, action.kind)
  if (byMode !== 'ask') return { decision: byMode === 'allow' ? 'allow-once' : 'reject-once', by: 'mode' }
  return remembered && { decision: remembered, by: 'remembered' }
}

/** The answer to a method of the client that the mode does not allow. */
export function deniedByMode(what: string, mode: PermissionMode) {
  return permissionDenied(
    `permission denied: ${what} is not allowed in mode ${mode}; ask with session/request_permission first`,
  )
}
