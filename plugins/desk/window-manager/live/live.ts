import { Feed } from '../../../../kernel/kit/feed.js'
import type { WindowStreamEvent } from '../../../../schemas/window-manager.js'

/** Commands that a workspace remembers for readers that come back; who was away for more gets a snapshot. */
const REMEMBERED = 256
/** Workspaces whose commands are remembered, those that were busy last. */
const WORKSPACES = 64

/** The last commands of each workspace, for its streams. */
export class Live {
  /** Another number when the settings have changed. */
  settings = 0
  /** By workspace, the one that was busy last at the end; one without commands is there for its readers. */
  readonly #feeds = new Map<string, Feed<WindowStreamEvent>>()

  /** A command has become durable. */
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

  /** The commands after a revision up to another, or undefined when not all of them are known any more. */
  between(workspaceId: string, after: number, upTo: number): WindowStreamEvent[] | undefined {
    return this.#feed(workspaceId).between(after, upTo)
  }

  /** The newest revision that readers were told of; undefined when none is remembered. */
  latest(workspaceId: string): number | undefined {
    return this.#feeds.get(workspaceId)?.last
  }

  /** Something that readers of this workspace want to know. */
  notify(workspaceId: string): void {
    this.#feeds.get(workspaceId)?.wake()
  }

  /** Readers of all workspaces want to know. */
  settingsChanged(): void {
    this.settings++
    for (const feed of this.#feeds.values()) feed.wake()
  }

  /** Forgets the commands of a workspace; its readers look again. */
  forget(workspaceId: string): void {
    const feed = this.#feeds.get(workspaceId)
    this.#feeds.delete(workspaceId)
    feed?.wake()
  }

  /** Resolves at the next notification; to be asked for before the state is read. */
  next(workspaceId: string): Promise<void> {
    return this.#feed(workspaceId).next()
  }

  #feed(id: string): Feed<WindowStreamEvent> {
    const feed = this.#feeds.get(id) ?? new Feed<WindowStreamEvent>(REMEMBERED)
    this.#feeds.set(id, feed)
    return feed
  }
}
