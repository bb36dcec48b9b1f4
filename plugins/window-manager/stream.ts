import type {
  WindowClient,
  WindowManagerErrorBody,
  WindowManagerState,
  WindowStreamFrame,
} from '../../schemas/window-manager.js'
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
  readonly gone: WindowManagerErrorBody
  readonly signal: AbortSignal
}

/** A snapshot, unless the reader has a revision from which everything is known; then commands and changes of its client. */
export async function* windowFrames(
  source: StreamSource,
  after: number | undefined,
): AsyncGenerator<WindowStreamFrame> {
  const { workspaceId: workspace_id, live, signal } = source
  const aborted = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
  let at = after
  let presented: number | undefined
  while (!signal.aborted) {
    const next = live.next(workspace_id)
    const revision = source.revision()
    if (revision === undefined) {
      yield { type: 'error', error: source.gone }
      return
    }
    // What is stored and not yet on the disk comes as an event of its own when it is.
    const upTo = Math.min(revision, live.latest(workspace_id) ?? revision)
    const missed = at === undefined || at > revision ? undefined : live.between(workspace_id, at, Math.max(at, upTo))
    if (at !== undefined && missed) {
      for (const event of missed) yield { type: 'event', event, revision: event.revision, workspace_id }
      at = Math.max(at, upTo)
    } else {
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
    await Promise.race([next, aborted])
  }
}
