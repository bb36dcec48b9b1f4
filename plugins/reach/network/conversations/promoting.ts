import { createHash } from 'node:crypto'
import { clip } from '../../../../kernel/kit/text.js'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type { PromoteTaskBody } from '../../../../schemas/network/agent.js'
import type { Envelope, TaskLink } from '../../../../schemas/network/messages.js'
import type { Task } from '../../../../schemas/tasks.js'
import { type TaskLinkRow, taskLinks } from '../agent/table.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { type ContainerRow, type MessageRow, messages } from '../tables.js'

/** Maximum number of thread messages listed as sources of a task; the newest are used. */
const MAX_SOURCES = 100
const MAX_TITLE = 200
const MAX_DESCRIPTION = 8_000

/** Tasks created from thread messages. */
export class Promoting {
  constructor(private readonly kernel: K) {}

  /**
   * Creates a task from a message, at most one per message. The task waits to be started.
   * @throws Fault `network_message_not_found`, `tasks_unavailable`, and the faults of task creation
   */
  async promote(
    thread: ContainerRow,
    { origin_message_id: originId, title, description, priority, metadata }: PromoteTaskBody,
    actor: Actor,
  ): Promise<{ readonly origin: TaskLink; readonly task: Task }> {
    const { db, clock, needs } = this.kernel
    const { workspaceId, channel, id: threadId } = thread
    const tasks = needs.tasks.current
    if (!tasks) throw NetworkErrors.tasks_unavailable()
    const origin = messages.get(db, { workspaceId, id: originId })
    if (origin?.containerId !== threadId || origin.channel !== channel)
      throw NetworkErrors.network_message_not_found(`the thread has no message ${JSON.stringify(originId)}`)
    const { text = '' } = (JSON.parse(origin.envelope) as Envelope).body as { readonly text?: string }
    const { task } = await tasks.submit(
      actor,
      {
        id: taskIdOf(origin),
        title: title ?? (titleOf(text) || thread.title),
        description: description ?? clip(text, MAX_DESCRIPTION),
        ...{ scope: 'workspace', workspace: workspaceId },
        ...(priority !== undefined && { priority }),
        ...(metadata !== undefined && { metadata }),
      },
      { origin: { kind: 'network', ref: threadId }, isQueued: false },
    )
    const sources = this.#sources(thread)
    const now = clock.now()
    const link = await db.tx(t => {
      const before = taskLinks.get(t, { workspaceId, originMessageId: originId })
      const row: TaskLinkRow = {
        ...{ workspaceId, originMessageId: originId, channel, threadId, taskId: task.id },
        digest: digestOf(sources),
        sourceMessageIds: sources.map(({ id }) => id),
        ...{ createdAt: before?.createdAt ?? now, updatedAt: now },
      }
      if (before) return before
      taskLinks.insert(t, row)
      return row
    })
    return { origin: wire(link), task }
  }

  /** Tasks created from a thread, oldest first. */
  links({ workspaceId, channel, id: threadId }: ContainerRow): TaskLink[] {
    return taskLinks.all(this.kernel.db, { workspaceId, channel, threadId }, 'ORDER BY created_at').map(wire)
  }

  #sources({ workspaceId, channel, id }: ContainerRow): MessageRow[] {
    const where = 'WHERE workspace_id = ? AND channel = ? AND container_id = ? ORDER BY seq DESC LIMIT +?'
    return messages.query(this.kernel.db, where, [workspaceId, channel, id, MAX_SOURCES]).reverse()
  }
}

/** Derived from the message, so that a repeated request finds the existing task. */
const taskIdOf = ({ workspaceId, id }: MessageRow): string =>
  `task_${createHash('sha256').update(`${workspaceId}\0${id}`).digest('hex').slice(0, 16)}`

const titleOf = (text: string): string => clip(text.trim().split('\n')[0] ?? '', MAX_TITLE)

function digestOf(sources: readonly MessageRow[]): string {
  const hash = createHash('sha256')
  for (const { id, digest } of sources) hash.update(`${id} ${digest}\n`)
  return `sha256:${hash.digest('hex')}`
}

const wire = (row: TaskLinkRow): TaskLink => ({
  channel: row.channel,
  digest: row.digest,
  origin_message_id: row.originMessageId,
  task_id: row.taskId,
  thread_id: row.threadId,
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
  source_message_ids: [...row.sourceMessageIds],
  workspace_id: row.workspaceId,
})
