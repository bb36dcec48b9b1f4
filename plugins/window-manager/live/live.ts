import type { WindowStreamEvent } from '../../../schemas/window-manager.js'

/** Commands that a workspace remembers for readers that come back; who was away for more gets a snapshot. */
const REMEMBERED = 256
/** Workspaces whose commands are remembered, those that were busy last. */
const WORKSPACES = 64

interface Wake {
  readonly happened: Promise<void>
  readonly wake: () => void
}

/** The last commands of each workspace, for its streams. A reader holds a revision and no queue, so that a slow one costs nothing. */
export class Live {
  /** Another number when the settings have changed. */
  settings = 0
  readonly #events = new Map<string, WindowStreamEvent[]>()
  readonly #wakes = new Map<string, Wake>()

  /** A command has become durable. */
  publish(event: WindowStreamEvent): void {
    const { workspace_id: id } = event
    const events = this.#events.get(id) ?? []
    this.#events.delete(id)
    this.#events.set(id, [...events, event].slice(-REMEMBERED))
    const [oldest] = this.#events.keys()
    if (this.#events.size > WORKSPACES && oldest !== undefined) this.#events.delete(oldest)
    this.notify(id)
  }

  /** The commands after a revision up to another, or undefined when not all of them are known any more. */
  between(workspaceId: string, after: number, upTo: number): WindowStreamEvent[] | undefined {
    const events = this.#events.get(workspaceId) ?? []
    const missed = events.filter(({ revision }) => revision > after && revision <= upTo)
    return missed.length === upTo - after ? missed : undefined
  }

  /** The newest revision that readers were told of; undefined when none is remembered. */
  latest(workspaceId: string): number | undefined {
    return this.#events.get(workspaceId)?.at(-1)?.revision
  }

  /** Something that readers of this workspace want to know. */
  notify(workspaceId: string): void {
    const wake = this.#wakes.get(workspaceId)
    this.#wakes.delete(workspaceId)
    wake?.wake()
  }

  /** Readers of all workspaces want to know. */
  settingsChanged(): void {
    this.settings++
    for (const id of [...this.#wakes.keys()]) this.notify(id)
  }

  forget(workspaceId: string): void {
    this.#events.delete(workspaceId)
    this.notify(workspaceId)
  }

  /** Resolves at the next notification; to be asked for before the state is read. */
  next(workspaceId: string): Promise<void> {
    const known = this.#wakes.get(workspaceId)
    if (known) return known.happened
    let wake = () => {}
    const happened = new Promise<void>(resolve => {
      wake = resolve
    })
    this.#wakes.set(workspaceId, { happened, wake })
    return happened
  }
}
