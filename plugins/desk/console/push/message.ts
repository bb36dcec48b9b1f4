import { clip } from '../../../../kernel/kit/text.js'
import type { ChannelMessage } from '../../../reach/notifications/api.js'

/** Maximum characters of a title that is made from an event name. */
const TITLE = 80

const TITLES: Readonly<Record<string, string>> = {
  'attention.asked': 'An agent waits for your answer',
  'attention.expired': 'A question was not answered in time',
  'agent.notice': 'An agent sent a notice',
  'session.unhealthy': 'A session failed',
  'session.hung': 'A session is unresponsive',
  'task.run_failed': 'A task run failed',
  'task.run_needs_attention': 'A task run needs attention',
  'task.needs_attention': 'A task needs attention',
  'tool.approval_requested': 'A tool call waits for approval',
  'provider.auth_required': 'A provider needs a login',
}

/** The message to a browser: ids, and a title for the kind of event. Names and texts stay in the daemon. */
export interface PushPayload {
  readonly title: string
  /** A later message with the same tag replaces the notification. */
  readonly tag: string
  readonly session?: string
  readonly task?: string
}

export function payloadOf({ type, sessionId, taskId }: ChannelMessage): PushPayload {
  const plain = type.replaceAll(/[._]/g, ' ')
  const title = TITLES[type] ?? clip(`${plain.charAt(0).toUpperCase()}${plain.slice(1)}`, TITLE)
  const subject = sessionId ?? taskId
  return {
    title,
    tag: subject === undefined ? type : `${type}:${subject}`,
    ...(sessionId !== undefined && { session: sessionId }),
    ...(taskId !== undefined && { task: taskId }),
  }
}
