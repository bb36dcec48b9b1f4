import { Feed } from '../../../../kernel/kit/feed.js'
import type { WindowStreamEvent } from '../../../../schemas/window-manager.js'

/** Commands that a workspace keeps for reconnecting readers; a reader that missed more gets a snapshot. */
const REMEMBERED = 256
/** Workspaces whose commands are kept; the most recently active stay. */
const WORKSPACES = 64

/** The latest commands of each workspace, for its streams. */
export class Live {
  /** Increases with every change of the settings. */
  settings = 0
  /** By workspace, most recently active last. A feed without commands exists for its readers only. */
  readonly #feeds = new Map<string, Feed<WindowStreamEvent>>()

  /** Publishes a durable command. */
  publish(event: WindowStreamEvent): void {
    const { workspace_id: id, revision } = event
    const feed = this.#feed(id)
    this.#feeds.delete(id)
    this.#feeds.set(id, feed)
    feed.publish(revision, event)
    if (this.#feeds.size <= WORKSPACES) return
    const [oldest = '', ...others] = [...this.#feeds.keys()].filter(one => this.latest(one) !== undefined)
    if (others.length >= WORKSPACES) this.forget(oldest)
  }

  /** The commands after one revision up to another; undefined if some are no longer kept. */
  between(workspaceId: string, after: number, upTo: number): WindowStreamEvent[] | undefined {
    return this.#feed(workspaceId).between(after, upTo)
  }

  /** The newest published revision; undefined if no command is kept. */
  latest(workspaceId: string): number | undefined {
    return this.#feeds.get(workspaceId)?.last
  }

  /** Wakes the readers of a workspace. */
  notify(workspaceId: string): void {
    this.#feeds.get(workspaceId)?.wake()
  }

  /** Wakes all readers after a change of the settings. */
  settingsChanged(): void {
    this.settings++
    for (const feed of this.#feeds.values()) feed.wake()
  }

  /** Removes the commands of a workspace; its readers read its state again. */
  forget(workspaceId: string): void {
    const feed = this.#feeds.get(workspaceId)
    this.#feeds.delete(workspaceId)
    feed?.wake()
  }

  /** Resolves at the next notification. Call it before reading the state, so that no change is missed. */
  next(workspaceId: string): Promise<void> {
    return this.#feed(workspaceId).next()
  }

  #feed(id: string): Feed<WindowStreamEvent> {
    const feed = this.#feeds.get(id) ?? new Feed<WindowStreamEvent>(REMEMBERED)
    this.#feeds.set(id, feed)
    return feed
  }
}
