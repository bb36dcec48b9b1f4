import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { InboxItem, InboxQuestion } from '../../../../schemas/sessions.js'
import { boundedQuestion, type WholeQuestion } from '../../acp/api.js'
import type { SessionsContext } from '../context.js'
import { InboxSources } from '../inbox-sources.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** The pending requests of all sessions, and at most `most` items per kind of other plugins, oldest first. */
export function inboxOf(context: SessionsContext, live: readonly LiveSession[], most?: number): InboxItem[] {
  const items: InboxItem[] = live.flatMap(one => requestsOf(one))
  for (const { entry } of context.kernel.collect(InboxSources)) for (const item of entry.read(most)) items.push(item)
  return items.sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
}

/** The command that answers the oldest pending request of a session; undefined when none is pending. */
export function answerTo(live: LiveSession | undefined): string | undefined {
  return pendingIn(live)[0]?.answer
}

/** The pending requests of one session. */
export function pendingIn(live: LiveSession | undefined): readonly InboxQuestion[] {
  return live ? requestsOf(live) : []
}

/** Permission requests come first, because they block the agent. */
function requestsOf({ row, binding }: LiveSession): InboxQuestion[] {
  const session = {
    session_id: row.id,
    ...(row.name && { session_name: row.name }),
    agent_name: row.agent_name,
    workspace_id: row.workspace_id,
    workspace_path: row.workspace_path,
  }
  const { permissions, clarifications } = binding.running ?? {}
  return [
    ...(permissions?.pending ?? []).map(({ requestId, turnId, question, createdAt, expiresAt }) => ({
      ...session,
      interaction_id: requestId,
      turn_id: turnId,
      ...askedIn(question),
      answer: command('session approve', row.id, '--request', requestId),
      show: command('session interactions', row.id, requestId),
      created_at: iso(createdAt),
      expires_at: iso(expiresAt),
    })),
    ...(clarifications?.pending ?? []).map(({ request_id, turnId, question, choices, asked_at, deadline }) => ({
      ...session,
      interaction_id: request_id,
      turn_id: turnId,
      kind: 'question',
      title: choices ? `${question} (${choices.join(' / ')})` : question,
      answer: command('session clarify', row.id),
      created_at: asked_at,
      expires_at: deadline,
    })),
  ]
}

/** A short form of the question: the command unless it is the title already, and the size of the file changes. */
function askedIn(question: WholeQuestion) {
  const { title, kind, command, outside, diffs, hidden } = boundedQuestion(question)
  const isSaid = command === undefined || title.replaceAll('`', '').trim() === command.trim()
  const changes = [
    ...diffs.map(({ path, added, removed, is_new: isNew }) => `${path} +${added} -${removed}${isNew ? ' (new)' : ''}`),
    ...(hidden && hidden.files > 0 ? [`${hidden.files} more files`] : []),
  ]
  return {
    kind,
    title,
    ...(!isSaid && { command }),
    ...(outside.length > 0 && { outside }),
    ...(changes.length > 0 && { changes }),
  }
}
