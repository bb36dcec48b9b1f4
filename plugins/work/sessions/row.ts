import type { PermissionMode } from '../../agents/agents/api.js'
import type { FailureKind, SessionInfo, SessionState, StopReason } from './api.js'

/** A row of sessions_session: the truth about the state of a session. Times in epoch milliseconds. */
export interface SessionRow {
  readonly id: string
  /** Empty for one without a name. */
  readonly name: string
  readonly type: SessionInfo['type']
  readonly agent_name: string
  readonly workspace_id: string
  readonly workspace_path: string
  readonly provider: string
  readonly model: string
  readonly reasoning_effort: string | null
  readonly speed: 'normal' | 'fast' | null
  readonly state: SessionState
  readonly stop_reason: StopReason | null
  readonly stop_detail: string | null
  readonly failure_kind: FailureKind | null
  readonly failure_summary: string | null
  readonly failure_bundle: string | null
  readonly acp_session_id: string | null
  /** 1 when the last process said that it can load sessions. */
  readonly supports_load: number | null
  readonly epoch: number
  /** Size of the journal when last looked at. */
  readonly journal_bytes: number
  readonly cause: string | null
  /** A {@link Digest} as JSON; null: nothing was counted yet. */
  readonly usage: string | null
  /** The mode that was asked for instead of the agent's. */
  readonly permissions_asked: PermissionMode | null
  /** The mode in force at its last start, or when it was made; null: an earlier version did not write it down. */
  readonly permissions: PermissionMode | null
  /** A {@link SessionConfinement} as JSON; null: nothing was said when it was made. */
  readonly sandbox: string | null
  /** A {@link SessionLineage} as JSON; null: a person or the daemon started it. */
  readonly lineage: string | null
  /** {@link SessionRights} as JSON; null: all that there are. */
  readonly rights: string | null
  /** Who holds it, until `attach_expires_at`; whoever held it last where that is over. */
  readonly attached_to: string | null
  readonly attach_expires_at: number | null
  readonly archived_at: number | null
  /** When a turn ended, or failed, that nobody has seen yet. */
  readonly unseen_since: number | null
  /** When it last began, or ceased, to want attention. */
  readonly attention_changed_at: number | null
  /** The runtime that was chosen for later prompts, a RuntimeSelection as JSON. */
  readonly selection: string | null
  /** Rises with each choice. */
  readonly selection_revision: number
  /** The runtime that the agent really took, as JSON; null: not known yet. */
  readonly effective: string | null
  /** Stretches of the journal that were taken out of the conversation, `[[from, through], …]` as JSON. */
  readonly cuts: string | null
  /** The last rewind with its key, for a repetition of it. */
  readonly rewound: string | null
  /** The session of which it goes on with the conversation, in a worktree of its own. */
  readonly forked_from: string | null
  /** Name of its worktree. */
  readonly worktree_id: string | null
  /** A {@link Goal} as JSON; null: none. */
  readonly goal: string | null
  /** A ResolvedParticipation as JSON, decided when it was made; null: local, which nothing asked for. */
  readonly participation: string | null
  /** Its finished prompts are in a file; the highest generation of them. Null: they are in the catalog. */
  readonly prompts_moved: number | null
  readonly last_activity_at: number
  readonly created_at: number
  readonly updated_at: number
}

/** It never had a process, and so nothing is in its journal that has to be ended. */
export const isUnused = ({ state, acp_session_id, epoch, forked_from }: SessionRow) =>
  state === 'active' && acp_session_id === null && epoch === 0 && forked_from === null

/** What of a row may change. */
export type SessionChange = Partial<Omit<SessionRow, 'id' | 'created_at'>>

/** The names that may stand in a statement. */
export const COLUMNS: ReadonlySet<string> = new Set<keyof SessionRow>([
  'name',
  'type',
  'agent_name',
  'workspace_id',
  'workspace_path',
  'provider',
  'model',
  'reasoning_effort',
  'speed',
  'state',
  'stop_reason',
  'stop_detail',
  'failure_kind',
  'failure_summary',
  'failure_bundle',
  'acp_session_id',
  'supports_load',
  'epoch',
  'journal_bytes',
  'cause',
  'usage',
  'permissions_asked',
  'permissions',
  'sandbox',
  'lineage',
  'rights',
  'attached_to',
  'attach_expires_at',
  'archived_at',
  'unseen_since',
  'attention_changed_at',
  'selection',
  'selection_revision',
  'effective',
  'cuts',
  'rewound',
  'forked_from',
  'worktree_id',
  'goal',
  'participation',
  'prompts_moved',
  'last_activity_at',
  'created_at',
  'updated_at',
])

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
