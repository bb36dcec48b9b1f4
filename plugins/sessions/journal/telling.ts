import type { EventContent, NewEvent } from '../events.js'
import type { SessionHooks } from '../hooks.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** Tells the points of sessions what was written into a journal. Nobody waits for them. */
export function tellRecorded(points: SessionHooks, sessionId: string, { type, turnId, content }: NewEvent): void {
  // A hook on what is recorded would have its own runs recorded, and be told of them.
  if (type === 'hook_run') return
  const told = { sessionId, type, turnId, content }
  void points.eventRecorded.call(told)
  switch (type) {
    case 'user_message':
      void points.messagePersisted.call(told)
      void points.turnStart.call(told)
      break
    case 'agent_message':
      void points.messagePersisted.call(told)
      void points.messageEnd.call(told)
      break
    case 'tool_result':
      void (content.status === 'failed' ? points.toolPostError : points.toolPostCall).call(told)
      break
    case 'permission':
      if (content.status !== 'resolved') break
      void points.permissionResolved.call(told)
      if (!String(content.decision).startsWith('allow')) void points.permissionDenied.call(told)
      break
    case 'session.compaction_fired':
      void points.contextCompacted.call(told)
      break
    case 'done':
    case 'error':
      void points.turnEnd.call(told)
      break
  }
}

/** Nobody waits for it, and it does not keep a session from ending: one that stops, or has no room, is left as it is. */
export function noteHookRun(live: LiveSession | undefined, content: EventContent): void {
  if (!live || live.stopping || live.isFull || live.log.damage || live.row.state === 'stopped') return
  live.log.append({ type: 'hook_run', turnId: live.turn?.id ?? '', content })
}
