import { channelled, type Fault, type SocketReply } from '../../../kernel/plugin.js'
import type {
  WindowClient,
  WindowManagerErrorCode,
  WindowManagerState,
  WindowStreamFrame,
} from '../../../schemas/window-manager.js'
import { Refusal } from '../refusal.js'
import type { Live } from './live.js'

/** What a stream reads from. */
export interface StreamSource {
  readonly workspaceId: string
  readonly live: Live
  /** As stored; undefined when the workspace is gone. */
  revision(): number | undefined
  snapshot(): WindowManagerState
  /** The reader's own client, where it said which. */
  client(): WindowClient | undefined
  readonly signal: AbortSignal
}

/** What a reader is told that knows a revision, or none. */
export function windowChannel(source: StreamSource, after: number | undefined): SocketReply {
  const failed = ({ code, message }: Fault) => {
    const why = code === 'slow_consumer' ? 'window_manager_slow_consumer' : 'window_manager_unavailable'
    return refused(source.workspaceId, why, message)
  }
  return channelled({ stream: windowFrames(source, after), failed })
}

const refused = (id: string, code: WindowManagerErrorCode, message: string): WindowStreamFrame => ({
  type: 'error',
  error: new Refusal(code, message).toBody(id),
})

/**
 * A snapshot, unless the reader has a revision from which everything is known; then commands and changes of its client, and
 * another snapshot when the settings change.
 */
async function* windowFrames(
  source: StreamSource,
  after: number | undefined,
  // Of the moment of the request: what changes until the first frame is asked for is told as well.
  settings = source.live.settings,
): AsyncGenerator<WindowStreamFrame> {
  const { workspaceId: workspace_id, live, signal } = source
  let wake = () => {}
  signal.addEventListener('abort', () => wake(), { once: true })
  let at = after
  let presented: number | undefined
  while (!signal.aborted) {
    const next = live.next(workspace_id)
    const revision = source.revision()
    if (revision === undefined) {
      yield refused(workspace_id, 'window_manager_workspace_not_found', 'the workspace was deleted')
      return
    }
    // What is stored and not yet on the disk comes as an event of its own when it is.
    const upTo = Math.min(revision, live.latest(workspace_id) ?? revision)
    const missed = at === undefined || at > revision ? undefined : live.between(workspace_id, at, Math.max(at, upTo))
    if (at !== undefined && missed && settings === live.settings) {
      for (const event of missed) yield { type: 'event', event, revision: event.revision, workspace_id }
      at = Math.max(at, upTo)
    } else {
      settings = live.settings
      const snapshot = source.snapshot()
      at = snapshot.revision
      const client = source.client()
      presented = client?.presentation_revision
      yield { type: 'snapshot', snapshot, revision: at, workspace_id, ...(client && { client }) }
    }
    const client = source.client()
    if (client && client.presentation_revision !== presented) {
      presented = client.presentation_revision
      yield { type: 'client', client, revision: at, workspace_id }
    }
    // Not Promise.race: the one for the abort would keep all of its calls, and a stream has many.
    await new Promise<void>(resolve => {
      wake = resolve
      void next.then(resolve)
    })
  }
}
