/** Window manager of a workspace. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from './kernel/common.js'
import { ResourceRecord } from './kernel/record.js'
import { Arrangement, Desktop, LayoutDocument, Overrides, Window } from './window-manager/document.js'
import { WindowPreferences } from './window-manager/preferences.js'

export * from './window-manager/document.js'
export * from './window-manager/preferences.js'

/** Command names of the contract. */
export const WindowManagerCommand = v.picklist([
  'desktop.create',
  'desktop.update',
  'desktop.reorder',
  'desktop.switch',
  'desktop.delete',
  'window.open',
  'window.navigate',
  'window.close',
  'window.focus',
  'window.move',
  'window.swap',
  'window.toggle_floating',
  'window.zoom',
  'layout.arrange',
  'layout.resize',
  'layout.balance',
  'layout.undo',
  'layout.redo',
  'layout.replace',
])
export type WindowManagerCommand = v.InferOutput<typeof WindowManagerCommand>

/** Actor of a change; default: the authenticated caller. */
export const WindowManagerActor = v.strictObject({
  id: v.optional(v.pipe(v.string(), v.maxLength(256))),
  kind: v.optional(v.pipe(v.string(), v.maxLength(64))),
})
export type WindowManagerActor = v.InferOutput<typeof WindowManagerActor>

/** An executed command with its changes, before and after. Unchanged desktops and windows are left out. */
export const HistoryEntry = v.pipe(
  v.object({
    actor: WindowManagerActor,
    command_id: WindowManagerCommand,
    created_at: Timestamp,
    origin: v.optional(v.string()),
    before: Arrangement,
    after: Arrangement,
  }),
  v.title('HistoryEntry'),
)
export type HistoryEntry = v.InferOutput<typeof HistoryEntry>

/** Entries in order; the last one is next. */
export const WindowHistory = v.object({ undo: v.array(HistoryEntry), redo: v.array(HistoryEntry) })
export type WindowHistory = v.InferOutput<typeof WindowHistory>

/** GET of the state; replies to commands contain only the next entry of each history. */
export const WindowManagerState = v.pipe(
  v.object({
    workspace_id: v.string(),
    revision: Integer,
    version: Integer,
    updated_at: Timestamp,
    desktops: v.array(Desktop),
    windows: v.record(v.string(), Window),
    overrides: Overrides,
    /** Effective preferences: settings with the overrides applied. In the state and in stream snapshots. */
    preferences: v.optional(WindowPreferences),
    history: WindowHistory,
  }),
  v.title('WindowManagerState'),
)
export type WindowManagerState = v.InferOutput<typeof WindowManagerState>

/** A problem of a document, with its path. */
export const WindowDiagnostic = v.object({ code: v.string(), message: v.string(), path: v.optional(v.string()) })
export type WindowDiagnostic = v.InferOutput<typeof WindowDiagnostic>

/** Ids changed, created or removed by a command. */
export const WindowChanges = v.pipe(
  v.object({
    client_ids: v.optional(v.array(v.string())),
    desktop_ids: v.optional(v.array(v.string())),
    group_ids: v.optional(v.array(v.string())),
    node_ids: v.optional(v.array(v.string())),
    window_ids: v.optional(v.array(v.string())),
  }),
  v.title('WindowChanges'),
)
export type WindowChanges = v.InferOutput<typeof WindowChanges>

/** A screen that currently shows the workspace. */
export const WindowClient = v.pipe(
  v.object({
    client_id: v.string(),
    workspace_id: v.string(),
    active_desktop_id: v.string(),
    focus_order: v.array(v.string()),
    focused_window_id: v.nullish(v.string()),
    presentation_revision: Integer,
    connected_at: Timestamp,
  }),
  v.title('WindowClient'),
)
export type WindowClient = v.InferOutput<typeof WindowClient>

export const WindowManagerErrorCode = v.picklist([
  'window_manager_workspace_not_found',
  'window_manager_revision_conflict',
  'window_manager_invalid_command',
  'window_manager_invalid_topology',
  'window_manager_desktop_not_found',
  'window_manager_window_not_found',
  'window_manager_client_not_found',
  'window_manager_destination_required',
  'window_manager_final_desktop',
  'window_manager_history_boundary',
  'window_manager_layout_not_found',
  'window_manager_slow_consumer',
  'window_manager_unavailable',
  'window_manager_not_stacked',
  'window_manager_window_pinned',
])
export type WindowManagerErrorCode = v.InferOutput<typeof WindowManagerErrorCode>

/** A precondition of a command that no longer holds. */
export const RebaseConflict = v.object({
  code: v.string(),
  entity_id: v.optional(v.string()),
  current_id: v.optional(v.string()),
})
export type RebaseConflict = v.InferOutput<typeof RebaseConflict>

/** Error body of the window manager. */
export const WindowManagerErrorBody = v.pipe(
  v.object({
    code: WindowManagerErrorCode,
    error: v.string(),
    workspace_id: v.string(),
    current_revision: v.optional(Integer),
    conflicts: v.optional(v.array(RebaseConflict)),
    diagnostics: v.optional(v.array(WindowDiagnostic)),
    details: v.optional(v.record(v.string(), v.string())),
  }),
  v.title('WindowManagerErrorBody'),
)
export type WindowManagerErrorBody = v.InferOutput<typeof WindowManagerErrorBody>

/** Preconditions of a command. A stale command with them still runs if all of them hold. */
export const Rebase = v.strictObject({
  boundary_index: v.nullish(Integer),
  source_node_id: v.nullish(v.string()),
  split_id: v.nullish(v.string()),
  target_node_id: v.nullish(v.string()),
  window_id: v.nullish(v.string()),
})
export type Rebase = v.InferOutput<typeof Rebase>

const writeHead = {
  actor: v.optional(WindowManagerActor),
  client_id: v.nullish(v.string()),
  expected_revision: Integer,
  origin: v.optional(v.pipe(v.string(), v.maxLength(200))),
  workspace_id: v.optional(v.string()),
}

/** POST of a command and of its preview. */
export const WindowCommandBody = v.strictObject({
  ...writeHead,
  command_id: WindowManagerCommand,
  payload: v.optional(v.unknown(), {}),
  rebase: v.nullish(Rebase),
})
export type WindowCommandBody = v.InferOutput<typeof WindowCommandBody>

/** Result of a command; `applied` is false if nothing changed. */
export const WindowCommandReply = v.object({
  applied: v.boolean(),
  changes: WindowChanges,
  client: v.nullish(WindowClient),
  diagnostics: v.optional(v.array(WindowDiagnostic)),
  rebased_from: v.optional(Integer),
  snapshot: WindowManagerState,
})
export type WindowCommandReply = v.InferOutput<typeof WindowCommandReply>

/** Predicted result of a command. */
export const WindowPreviewReply = v.object({
  changed: v.boolean(),
  changes: WindowChanges,
  client: v.nullish(WindowClient),
  diagnostics: v.optional(v.array(WindowDiagnostic)),
  snapshot: WindowManagerState,
})
export type WindowPreviewReply = v.InferOutput<typeof WindowPreviewReply>

/** PUT of a whole layout document. */
export const PutLayoutBody = v.strictObject({ ...writeHead, document: LayoutDocument })
export type PutLayoutBody = v.InferOutput<typeof PutLayoutBody>

/** POST of a document to validate. */
export const ValidateLayoutBody = v.strictObject({ document: LayoutDocument, workspace_id: v.optional(v.string()) })
export type ValidateLayoutBody = v.InferOutput<typeof ValidateLayoutBody>

export const ValidateLayoutReply = v.object({
  valid: v.boolean(),
  workspace_id: v.string(),
  diagnostics: v.optional(v.array(WindowDiagnostic)),
})
export type ValidateLayoutReply = v.InferOutput<typeof ValidateLayoutReply>

export const ListWindowClientsReply = v.object({ clients: v.array(WindowClient), workspace_id: v.string() })
export type ListWindowClientsReply = v.InferOutput<typeof ListWindowClientsReply>

/** POST of a client; the id of an attached client refreshes it. */
export const AttachClientBody = v.strictObject({
  active_desktop_id: v.optional(v.string()),
  client_id: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(64))),
  workspace_id: v.optional(v.string()),
})
export type AttachClientBody = v.InferOutput<typeof AttachClientBody>

export const ListLayoutProfilesReply = v.object({ records: v.array(ResourceRecord) })
export type ListLayoutProfilesReply = v.InferOutput<typeof ListLayoutProfilesReply>

export const LayoutProfileReply = v.object({ record: ResourceRecord })
export type LayoutProfileReply = v.InferOutput<typeof LayoutProfileReply>

/** PUT of a saved layout: a record of kind `window_layout`. */
export const PutLayoutProfileBody = v.strictObject({
  expected_version: v.optional(Integer),
  scope: v.strictObject({ kind: v.picklist(['global', 'workspace']), id: v.optional(v.string()) }),
  spec: v.unknown(),
})
export type PutLayoutProfileBody = v.InferOutput<typeof PutLayoutProfileBody>

export const DeleteLayoutProfileBody = v.strictObject({ expected_version: Integer })
export type DeleteLayoutProfileBody = v.InferOutput<typeof DeleteLayoutProfileBody>

/** GET of the stream. A reader at revision N gets later events, or a snapshot if these are no longer available. */
export const WindowStreamQuery = v.object({
  after_revision: v.optional(queryInteger(0)),
  client_id: v.optional(v.string()),
})
export type WindowStreamQuery = v.InferOutput<typeof WindowStreamQuery>

/** An executed command in the stream. */
export const WindowStreamEvent = v.object({
  actor: WindowManagerActor,
  changes: WindowChanges,
  command_id: WindowManagerCommand,
  occurred_at: Timestamp,
  origin: v.optional(v.string()),
  revision: Integer,
  workspace_id: v.string(),
})
export type WindowStreamEvent = v.InferOutput<typeof WindowStreamEvent>

/** Messages of the stream. */
export const WindowStreamFrame = v.variant('type', [
  v.object({
    type: v.literal('snapshot'),
    client: v.nullish(WindowClient),
    revision: Integer,
    snapshot: WindowManagerState,
    workspace_id: v.string(),
  }),
  v.object({
    type: v.literal('event'),
    event: WindowStreamEvent,
    revision: Integer,
    workspace_id: v.string(),
  }),
  v.object({ type: v.literal('client'), client: WindowClient, revision: Integer, workspace_id: v.string() }),
  v.object({ type: v.literal('error'), error: WindowManagerErrorBody }),
])
export type WindowStreamFrame = v.InferOutput<typeof WindowStreamFrame>
