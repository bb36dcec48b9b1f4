import { Feed, follow, positionOf } from '../../../../kernel/kit/feed.js'
import type { Frame } from '../../../../kernel/plugin.js'
import type { CatalogChange } from '../../../../schemas/sessions.js'

/** Changes that a returning reader gets one by one; beyond them it has to read the list again. */
const REMEMBERED = 1024

/** Changes of the session list. Each one names a session; readers get the data from the list itself. */
export class CatalogFeed {
  readonly #feed = new Feed<CatalogChange>(REMEMBERED)
  #at = 0

  /** @param boot prefix of each position, so that positions of another daemon process are recognised */
  constructor(private readonly boot: string) {}

  tell(kind: CatalogChange['kind'], sessionId: string, workspaceId: string): void {
    this.#feed.publish(++this.#at, { kind, session_id: sessionId, workspace_id: workspaceId })
  }

  /** Changes from now on, or from the position of a reader; `reset` when the missed changes are no longer remembered. */
  async *frames(lastEventId: string | undefined, signal: AbortSignal): AsyncGenerator<Frame> {
    const [boot, position] = lastEventId?.trim().split('-') ?? []
    const was = boot === this.boot ? positionOf(position) : undefined
    const source = {
      last: () => this.#at,
      read: (after: number) => {
        const entries = this.#feed.between(after, this.#at)
        return entries && { at: this.#at, entries }
      },
      snapshot: () => ({ at: this.#at, snapshot: undefined }),
      next: () => this.#feed.next(),
    }
    const isKnown = lastEventId === undefined || was !== undefined
    for await (const item of follow(source, was, signal)) {
      const id = `${this.boot}-${item.at}`
      if ('entries' in item) for (const data of item.entries) yield { id, event: data.kind, data }
      else if (item.reset || !isKnown) {
        yield { id, event: 'reset', data: { kind: 'reset', session_id: '', workspace_id: '' } }
      }
    }
  }
}
