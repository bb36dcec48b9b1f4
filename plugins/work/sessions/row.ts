import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { PermissionMode } from '../../agents/agents/api.js'
import type { FailureKind, SessionInfo, SessionState, StopReason } from './api.js'

const { integer, text, time } = column

/** A row of sessions_session: the truth about the state of a session. Times in epoch milliseconds. */
export const sessionRows = table('sessions_session', {
  id: text(),
  /** Empty for one without a name. */
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
  /** 1 when the last process said that it can load sessions. */
  supports_load: integer().nullable(),
  epoch: integer(),
  /** Size of the journal when last looked at. */
  journal_bytes: integer(),
  cause: text().nullable(),
  /** A {@link Digest} as JSON; null: nothing was counted yet. */
  usage: text().nullable(),
  /** The mode that was asked for instead of the agent's. */
  permissions_asked: text<PermissionMode>().nullable(),
  /** The mode in force at its last start, or when it was made; null: an earlier version did not write it down. */
  permissions: text<PermissionMode>().nullable(),
  /** A {@link SessionConfinement} as JSON; null: nothing was said when it was made. */
  sandbox: text().nullable(),
  /** A {@link SessionLineage} as JSON; null: a person or the daemon started it. */
  lineage: text().nullable(),
  /** {@link SessionRights} as JSON; null: all that there are. */
  rights: text().nullable(),
  /** Who holds it, until `attach_expires_at`; whoever held it last where that is over. */
  attached_to: text().nullable(),
  attach_expires_at: time().nullable(),
  archived_at: time().nullable(),
  /** When a turn ended, or failed, that nobody has seen yet. */
  unseen_since: time().nullable(),
  /** When it last began, or ceased, to want attention. */
  attention_changed_at: time().nullable(),
  /** The runtime that was chosen for later prompts, a RuntimeSelection as JSON. */
  selection: text().nullable(),
  /** Rises with each choice. */
  selection_revision: integer(),
  /** The runtime that the agent really took, as JSON; null: not known yet. */
  effective: text().nullable(),
  /** Stretches of the journal that were taken out of the conversation, `[[from, through], …]` as JSON. */
  cuts: text().nullable(),
  /** The last rewind with its key, for a repetition of it. */
  rewound: text().nullable(),
  /** The session of which it goes on with the conversation, in a worktree of its own. */
  forked_from: text().nullable(),
  /** Name of its worktree. */
  worktree_id: text().nullable(),
  /** A {@link Goal} as JSON; null: none. */
  goal: text().nullable(),
  /** A ResolvedParticipation as JSON, decided when it was made; null: local, which nothing asked for. */
  participation: text().nullable(),
  /** Its finished prompts are in a file; the highest generation of them. Null: they are in the catalog. */
  prompts_moved: integer().nullable(),
  last_activity_at: time(),
  created_at: time(),
  updated_at: time(),
})
export type SessionRow = RowOf<typeof sessionRows>

/** It never had a process, and so nothing is in its journal that has to be ended. */
export const isUnused = ({ state, acp_session_id, epoch, forked_from }: SessionRow) =>
  state === 'active' && acp_session_id === null && epoch === 0 && forked_from === null

/** What of a row may change. */
export type SessionChange = Partial<Omit<SessionRow, 'id' | 'created_at'>>

/** What of a row only becomes something later. */
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
