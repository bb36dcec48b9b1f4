import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { PermissionMode } from '../../agents/agents/api.js'
import type { FailureKind } from '../acp/api.js'
import type { SessionConfinement, SessionInfo, SessionState, StopReason } from './api.js'

const { integer, text, time } = column

/** A row of sessions_session, the source of truth for the state of a session. Times in epoch milliseconds. */
export const sessionRows = table('sessions_session', {
  id: text(),
  /** Empty for an unnamed session. */
  name: text(),
  type: text<SessionInfo['type']>(),
  agent_name: text(),
  workspace_id: text(),
  workspace_path: text(),
  provider: text(),
  model: text(),
  reasoning_effort: text().nullable(),
  speed: text<'normal' | 'fast'>().nullable(),
  state: text<SessionState>(),
  stop_reason: text<StopReason>().nullable(),
  stop_detail: text().nullable(),
  failure_kind: text<FailureKind>().nullable(),
  failure_summary: text().nullable(),
  failure_bundle: text().nullable(),
  acp_session_id: text().nullable(),
  /** 1 when the last process advertised session loading. */
  supports_load: integer().nullable(),
  epoch: integer(),
  /** Size of the journal when it was last read. */
  journal_bytes: integer(),
  cause: text().nullable(),
  /** A {@link Digest} as JSON; null: nothing was counted yet. */
  usage: text().nullable(),
  /** The requested mode that overrides the agent's. */
  permissions_asked: text<PermissionMode>().nullable(),
  /** The mode in force at its last start, or when it was made; null: written by an earlier version. */
  permissions: text<PermissionMode>().nullable(),
  /** A {@link SessionConfinement} as JSON; null: no decision was made at creation. */
  sandbox: text().nullable(),
  /** A {@link SessionLineage} as JSON; null: a person or the daemon started it. */
  lineage: text().nullable(),
  /** {@link SessionRights} as JSON; null: all rights. */
  rights: text().nullable(),
  /** The holder, until `attach_expires_at`; afterwards the last holder. */
  attached_to: text().nullable(),
  attach_expires_at: time().nullable(),
  archived_at: time().nullable(),
  /** Time of the first unseen end or failure of a turn. */
  unseen_since: time().nullable(),
  /** Time of the last change of the need for attention. */
  attention_changed_at: time().nullable(),
  /** The runtime chosen for later prompts, a RuntimeSelection as JSON. */
  selection: text().nullable(),
  /** Incremented with each choice. */
  selection_revision: integer(),
  /** The runtime in use by the agent, as JSON; null: not known yet. */
  effective: text().nullable(),
  /** Journal ranges removed from the conversation, `[[from, through], …]` as JSON. */
  cuts: text().nullable(),
  /** The last rewind with its key, so that a repetition is recognised. */
  rewound: text().nullable(),
  /** The session whose conversation this fork continues, in a worktree of its own. */
  forked_from: text().nullable(),
  /** Name of its worktree. */
  worktree_id: text().nullable(),
  /** A {@link Goal} as JSON; null: none. */
  goal: text().nullable(),
  /** A ResolvedParticipation as JSON, decided at creation; null: local without a request. */
  participation: text().nullable(),
  /** Highest generation of the finished prompts in the session's file; null: they are in the catalog. */
  prompts_moved: integer().nullable(),
  last_activity_at: time(),
  created_at: time(),
  updated_at: time(),
})
export type SessionRow = RowOf<typeof sessionRows>

/** The session never had a process, so its journal has nothing open to close. */
export const isUnused = ({ state, acp_session_id, epoch, forked_from }: SessionRow) =>
  state === 'active' && acp_session_id === null && epoch === 0 && forked_from === null

/** The confinement that was decided when the session was made. */
export function confinementOf({ sandbox }: Pick<SessionRow, 'sandbox'>): SessionConfinement | undefined {
  return sandbox === null ? undefined : (JSON.parse(sandbox) as SessionConfinement)
}

/** The changeable columns of a row. */
export type SessionChange = Partial<Omit<SessionRow, 'id' | 'created_at'>>

/** Initial values of the columns that are set later. */
export const NEW_ROW = {
  acp_session_id: null,
  supports_load: null,
  epoch: 0,
  journal_bytes: 0,
  cause: null,
  usage: null,
  attached_to: null,
  attach_expires_at: null,
  archived_at: null,
  unseen_since: null,
  attention_changed_at: null,
  selection: null,
  selection_revision: 0,
  effective: null,
  cuts: null,
  rewound: null,
  forked_from: null,
  worktree_id: null,
  goal: null,
  participation: null,
  prompts_moved: null,
} as const
