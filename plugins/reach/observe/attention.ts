import { command } from '../../../kernel/kit/commands/command-line.js'
import { cut } from '../../../kernel/kit/text.js'
import { type Actor, iso } from '../../../kernel/plugin.js'
import type { AttentionItem, Overview } from '../../../schemas/observe.js'
import { AGENT_SESSION, namedActor } from '../../access/identity/api.js'
import type { TaskAttention, WaitingTask } from '../../work/tasks/api.js'
import type { AttentionEntry, AttentionKind, RequestKind } from '../notifications/api.js'
import type { K } from './needs.js'

/** Listed items; all are counted. */
const LISTED = 12
/** Characters of a text. */
const TITLE = 200
const DETAIL = 300

type Kind = AttentionItem['kind']

/** Kinds of the overview by attention kind; finished items and notices wait for nothing. */
const KINDS: Readonly<Record<AttentionKind, Kind | undefined>> = {
  permission: 'approval',
  approval: 'approval',
  suggestion: 'approval',
  question: 'needs_input',
  blocked: 'needs_input',
  budget: 'needs_input',
  failure: 'failure',
  provider: 'failure',
  bridge: 'failure',
  delivery: 'failure',
  notice: undefined,
  finished: undefined,
}

/** Actions for an entry, by the kind of its request. */
const ACTIONS: Readonly<Record<RequestKind, readonly string[]>> = {
  decide: ['approve', 'deny'],
  answer: ['answer'],
  approve: ['approve', 'reject'],
  review: ['review'],
  repair: ['open'],
  login: ['login', 'open'],
  resend: ['resend', 'discard'],
  read: ['open'],
}

/** An entry listed in the overview. */
interface Waiting {
  readonly at: number
  readonly item: AttentionItem
}

/**
 * Items that wait for the caller. Tasks come from the caller's inbox; all others come from notifications, for people
 * only. Without notifications only tasks are listed.
 */
export function attentionOf(
  { needs, redact }: K,
  { actor, workspaceId }: { readonly actor: Actor; readonly workspaceId: string | undefined },
): Overview['attention'] {
  const tasks = needs.tasks.current?.attention(actor, { workspaceId, limit: LISTED }) ?? NO_TASKS
  const isPerson = namedActor(actor).kind === 'human' && actor.onBehalfOf?.kind !== AGENT_SESSION
  const entries = isPerson ? (needs.notifications.current?.unseen(workspaceId) ?? []) : []
  const others = entries.filter(entry => KINDS[entry.kind] !== undefined && !isOfTasks(entry))
  const counts = { ...tasks.counts }
  for (const { kind } of others) counts[KINDS[kind] as Kind]++
  const found: Waiting[] = [
    ...tasks.newest.map(ofTask),
    // Sorted newest first.
    ...others.slice(0, LISTED).map(entry => ofEntry(entry, text => redact.text(text))),
  ]
  return {
    total: Object.values(counts).reduce((sum, n) => sum + n, 0),
    by_kind: counts,
    items: found
      .sort((a, b) => b.at - a.at)
      .slice(0, LISTED)
      .map(({ item }) => item),
  }
}

const NO_TASKS: TaskAttention = { counts: { approval: 0, failure: 0, needs_input: 0 }, newest: [] }

/** Whether the inbox of tasks decides about an entry, so that it is not listed a second time here. That inbox has no reviews. */
const isOfTasks = ({ taskId, kind, requestKind }: AttentionEntry): boolean =>
  taskId !== undefined && !(kind === 'approval' && requestKind === 'review')

function ofTask({ kind, title, detail, actions, at, taskId, runId, sessionId }: WaitingTask): Waiting {
  const item: AttentionItem = {
    ...{ kind, title },
    ...(detail !== undefined && { detail }),
    actions: [...actions],
    ...{ occurred_at: iso(at), task_id: taskId },
    ...(runId !== undefined && { run_id: runId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    command: kind === 'approval' ? command('task approve', taskId) : command('task get', taskId),
  }
  return { at, item }
}

function ofEntry(entry: AttentionEntry, clean: (text: string) => string): Waiting {
  const { kind, requestKind, title, detail = '', occurredAt, taskId, runId, sessionId, command: next } = entry
  const item: AttentionItem = {
    kind: KINDS[kind] as Kind,
    title: clean(cut(title.replace(/\s+/g, ' '), TITLE)),
    ...(detail !== '' && { detail: clean(cut(detail.replace(/\s+/g, ' '), DETAIL)) }),
    actions: [...(requestKind === undefined ? [] : ACTIONS[requestKind])],
    occurred_at: iso(occurredAt),
    ...(taskId !== undefined && { task_id: taskId }),
    ...(runId !== undefined && { run_id: runId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(next !== undefined && { command: next }),
  }
  return { at: occurredAt, item }
}
