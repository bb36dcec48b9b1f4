import type { InboxItem, InboxMishap, InboxQuestion, InboxSuggestion, InboxTask } from '../../../../schemas/sessions.js'
import type { FinishedSession } from '../../../work/sessions/api.js'
import type { AttentionEntry } from '../api.js'

/** Entries for waiting questions, tasks and suggestions. Mishaps already are entries. */
export const inboxEntries = (items: readonly InboxItem[]): AttentionEntry[] =>
  items
    .filter(waits)
    .map(item => ('interaction_id' in item ? question(item) : 'task_id' in item ? task(item) : suggestion(item)))

const waits = (item: InboxItem): item is Exclude<InboxItem, InboxMishap> => !('item_id' in item)

function question(item: InboxQuestion): AttentionEntry {
  const { interaction_id: id, session_id: sessionId, kind, title, command, answer, created_at: at } = item
  const isQuestion = kind === 'question'
  return {
    id: `question:${sessionId}:${id}`,
    kind: isQuestion ? 'question' : 'permission',
    requestKind: isQuestion ? 'answer' : 'decide',
    ...{ sourceId: id, sessionId, title, command: answer, ...common(at) },
    ...(command !== undefined && { detail: command }),
    agentName: item.agent_name,
    workspaceId: item.workspace_id,
  }
}

const TASK_KINDS = {
  approval: { kind: 'approval', requestKind: 'approve' },
  attention: { kind: 'blocked', requestKind: 'repair' },
  review: { kind: 'approval', requestKind: 'review' },
} as const

function task(item: InboxTask): AttentionEntry {
  const { task_id: taskId, task_run_id: runId, kind, title, created_at: at } = item
  return {
    id: `${kind}:${runId ?? taskId}`,
    ...TASK_KINDS[kind],
    ...{ sourceId: taskId, taskId, title, ...common(at) },
    // A getter, because it needs queries and a reply shows few of the entries.
    get command() {
      return item.command
    },
    ...(runId !== undefined && { runId }),
    ...(item.workspace_id !== undefined && { workspaceId: item.workspace_id }),
  }
}

function suggestion(item: InboxSuggestion): AttentionEntry {
  const { suggestion_id: sourceId, workspace_id: workspaceId, title, command, created_at: at } = item
  const asks = { kind: 'suggestion', requestKind: 'review' } as const
  return { id: `suggestion:${sourceId}`, ...asks, sourceId, workspaceId, title, command, ...common(at) }
}

/** The time in the item is when it happened. A later occurrence has a different time. */
const common = (at: string) => ({ generation: Date.parse(at), occurredAt: Date.parse(at) })

/** A session whose turn ended without anyone seeing it. */
export const finishedEntry = ({ session, at }: FinishedSession): AttentionEntry => ({
  id: `finished:${session.id}`,
  kind: 'finished',
  requestKind: 'read',
  isFinished: true,
  ...{ sourceId: session.id, sessionId: session.id, generation: at, occurredAt: at },
  title: session.name || `Session of ${session.agentName}`,
  ...(session.failure && { detail: session.failure.summary }),
  agentName: session.agentName,
  workspaceId: session.workspaceId,
  command: `svc session recap ${session.id}`,
})
