import { type BoundOwned, Collected, isDropIn } from '../../../kernel/platform.js'
import type { Change, Consumer, Token, Tx } from '../../../kernel/plugin.js'
import type { OwnershipApi } from './api.js'
import type { K } from './needs.js'
import { Stream, type SweepWorld } from './sweep.js'
import { bound, cursors, prune, tombstones } from './tables.js'

/** Maximum number of tombstones that wait for plugins which do not run. */
const MOST = 100_000
const BOUND_EVERY = 1000
/** Event cursor by which the previous version followed deletions. */
const FORMER_CURSOR = 'workspace-deleted'

/**
 * Ended things, and the rows that belong to them. A tombstone is written in the transaction that ends a thing; the plugins with
 * such rows delete them after that, or at their next start.
 */
export class OwnershipService {
  readonly #streams = new Map<string, Stream>()
  /** The plugins that report ended things, by the id of their token. */
  readonly #owners = new Map<string, { readonly name: string; readonly has: (id: string) => boolean }>()
  readonly #world: SweepWorld

  constructor(private readonly kernel: K) {
    const { db, clock, ids, needs } = kernel
    this.#world = {
      ...{ db, clock, ids },
      report: (owner, error) => needs.report(owner, 'owned rows', error),
      has: kind => this.#owners.get(kind)?.has,
      retire: owner => needs.events.retire(owner, FORMER_CURSOR),
    }
    kernel.scope.defer('owned rows', () => Promise.all([...this.#streams.values()].map(stream => stream.end())))
  }

  /** Plugins have started: their rows are checked. */
  async running({ boot }: Change): Promise<void> {
    if (boot) await this.#forgetPurged()
    const isLost = await this.#forgetOwnerless()
    const entries = new Map<string, BoundOwned[]>()
    for (const { owner, entry } of this.kernel.collect(Collected.owned))
      entries.set(owner, [...(entries.get(owner) ?? []), entry])
    for (const [owner, owned] of entries) {
      const scope = owned[0]?.scope
      if (!scope || this.#streams.get(owner)?.isOver === false) continue
      this.#streams.set(owner, new Stream(this.#world, owner, scope, owned))
    }
    for (const [owner, stream] of this.#streams) {
      if (stream.isOver) this.#streams.delete(owner)
      else stream.started(isLost)
    }
  }

  /** Forgets purged extensions, which have no rows any more. */
  async #forgetPurged(): Promise<void> {
    const { db } = this.kernel
    const owners = new Set(db.rows('SELECT DISTINCT owner FROM kernel_migration').map(([owner]) => owner))
    const gone = cursors.all(db).filter(({ stream }) => isDropIn(stream) && !owners.has(stream))
    if (gone.length > 0)
      await db.tx(t => {
        for (const { stream, kind } of gone) {
          cursors.delete(t, { stream, kind })
          prune(t, kind)
        }
      })
  }

  /**
   * Forgets the cursors of things without an owner. Such things may end unreported, for example under a replacement that writes no
   * tombstones; so all their rows are checked when there is an owner again. Resolves to whether there were any.
   */
  async #forgetOwnerless(): Promise<boolean> {
    const { db } = this.kernel
    const kinds = db.rows('SELECT DISTINCT kind FROM ownership_cursor').map(([kind]) => `${kind}`)
    const lost = kinds.filter(kind => !this.#owners.has(kind))
    if (lost.length > 0)
      await db.tx(t => {
        for (const kind of lost) cursors.delete(t, { kind })
      })
    return lost.length > 0
  }

  /** The API for one plugin. */
  for({ name, scope }: Pick<Consumer, 'name' | 'scope'>): OwnershipApi {
    return {
      owns: ({ id: kind }, has) => {
        const other = this.#owners.get(kind)
        if (other) throw new TypeError(`${other.name} owns the resources with the token ${kind}`)
        this.#owners.set(kind, { name, has })
        scope.defer(`owner of ${kind}`, () => void this.#owners.delete(kind))
      },
      tombstone: (t, of, id) => this.#tombstone(name, t, of, id),
      isEnded: ({ id: kind }, id) => tombstones.get(this.kernel.db, { kind, id }) !== undefined,
    }
  }

  #tombstone(by: string, t: Tx, { id: kind }: Token<unknown>, id: string): void {
    if (this.#owners.get(kind)?.name !== by)
      throw new TypeError(`${by} does not own the resources with the token ${kind}, and cannot report their end`)
    const { db, clock } = this.kernel
    const own = db.within(t)
    // No stream would read tombstones of a kind that none has followed.
    if (!cursors.get(own, { kind })) return
    const sql = 'INSERT INTO ownership_tombstone (kind, id, at) VALUES (?, ?, ?) RETURNING seq'
    const seq = Number(own.row(sql, [kind, id, clock.now()])?.[0])
    if (seq % BOUND_EVERY === 0) bound(own, MOST)
    db.onDurable(t, () => {
      for (const stream of this.#streams.values()) stream.onTombstone(kind)
    })
  }
}
