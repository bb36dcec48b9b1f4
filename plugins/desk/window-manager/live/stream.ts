import { type FeedItem, follow } from '../../../../kernel/kit/feed.js'
import { channelled, type Fault, type SocketReply } from '../../../../kernel/plugin.js'
import type {
  WindowClient,
  WindowManagerErrorCode,
  WindowManagerState,
  WindowStreamEvent,
  WindowStreamFrame,
} from '../../../../schemas/window-manager.js'
import { Refusal } from '../refusal.js'
import type { Live } from './live.js'

/** Data source of a stream. */
export interface StreamSource {
  readonly workspaceId: string
  readonly live: Live
  /** The stored revision; undefined if the workspace was deleted. */
  revision(): number | undefined
  snapshot(): WindowManagerState
  /** The reader's own client, if it named one. */
  client(): WindowClient | undefined
  readonly signal: AbortSignal
}

/** The channel of a reader that has seen a revision, or none. */
export function windowChannel(source: StreamSource, after: number | undefined): SocketReply {
  const failed = ({ code, message }: Fault) => {
    const why = code === 'slow_consumer' ? 'window_manager_slow_consumer' : 'window_manager_unavailable'
    return refused(source.workspaceId, why, message)
  }
  return channelled({ stream: windowFrames(source, follow(feedOf(source), after, source.signal)), failed })
}

const refused = (id: string, code: WindowManagerErrorCode, message: string): WindowStreamFrame => ({
  type: 'error',
  error: new Refusal(code, message).toBody(id),
})

/** The feed of a workspace: commands, snapshots and settings. A change of the settings starts a new epoch. */
function feedOf({ workspaceId: id, live, revision, snapshot }: StreamSource) {
  return {
    last: revision,
    read: (after: number) => {
      // A stored command that is not durable yet is excluded: it is published once it is on disk.
      const known = Math.min(revision() ?? after, live.latest(id) ?? Number.POSITIVE_INFINITY)
      const at = Math.max(after, known)
      const entries = live.between(id, after, at)
      return entries && { at, entries }
    },
    snapshot: () => {
      const state = snapshot()
      return { at: state.revision, snapshot: state }
    },
    next: () => live.next(id),
    epoch: () => live.settings,
  }
}

/** Converts items of the feed to frames, adds changes of the reader's own client, and reports why the feed ended. */
async function* windowFrames(
  source: StreamSource,
  items: AsyncIterable<FeedItem<WindowManagerState, WindowStreamEvent>>,
): AsyncGenerator<WindowStreamFrame> {
  const { workspaceId: workspace_id, signal } = source
  let presented: number | undefined
  for await (const { at: revision, ...item } of items) {
    if ('snapshot' in item) {
      const { snapshot } = item
      const client = source.client()
      presented = client?.presentation_revision
      yield { type: 'snapshot', snapshot, revision, workspace_id, ...(client && { client }) }
    } else for (const event of item.entries) yield { type: 'event', event, revision: event.revision, workspace_id }
    const client = source.client()
    if (client && client.presentation_revision !== presented) {
      presented = client.presentation_revision
      yield { type: 'client', client, revision, workspace_id }
    }
  }
  if (!signal.aborted) yield refused(workspace_id, 'window_manager_workspace_not_found', 'the workspace was deleted')
}
