import {
  type BoundOwned,
  type Change,
  Collected,
  type Consumer,
  isDropIn,
  type Token,
  type Tx,
} from '../../kernel/plugin.js'
import { Owners, type OwnershipApi } from './api.js'
import type { K } from './needs.js'
import { Stream, type SweepWorld } from './sweep.js'
import { bound, cursors, prune, tombstones } from './tables.js'

/** Tombstones that wait for a plugin which does not run. */
const MOST = 100_000
const BOUND_EVERY = 1000
/** By this the version before followed deletions of what rows hung on. */
const FORMER_CURSOR = 'workspace-deleted'

/**
 * What has ended, and the rows that hang on it. A tombstone is written in the transaction that ends a thing; the plugins whose rows
 * hang on it delete them from then on, or when they start the next time.
 */
export class OwnershipService {
  readonly #streams = new Map<string, Stream>()
  readonly #world: SweepWorld

  constructor(private readonly kernel: K) {
    const { db, clock, ids, needs } = kernel
    this.#world = {
      ...{ db, clock, ids },
      report: (owner, error) => needs.report(owner, 'owned rows', error),
      has: kind => kernel.collect(Owners).find(({ entry }) => entry.of.id === kind)?.entry.has,
      retire: owner => needs.events.retire(owner, FORMER_CURSOR),
    }
    kernel.scope.defer('owned rows', () => Promise.all([...this.#streams.values()].map(stream => stream.end())))
  }

  /** Plugins were started: their rows are looked through. */
  async running({ boot }: Change): Promise<void> {
    if (boot) await this.#forgetPurged()
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
      else stream.started()
    }
  }

  /** Extensions that were purged have no rows any more, and wait for nothing. */
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

  /** The service as a plugin sees it. */
  for({ name }: Pick<Consumer, 'name'>): OwnershipApi {
    return {
      tombstone: (t, of, id) => this.#tombstone(name, t, of, id),
      isEnded: ({ id: kind }, id) => tombstones.get(this.kernel.db, { kind, id }) !== undefined,
    }
  }

  #tombstone(by: string, t: Tx, { id: kind }: Token<unknown>, id: string): void {
    const isOwner = this.kernel.collect(Owners).some(({ owner, entry }) => owner === by && entry.of.id === kind)
    if (!isOwner) throw new TypeError(`${by} contributes no owner of ${kind}, and cannot say that one has ended`)
    const { db, clock } = this.kernel
    const own = db.within(t)
    // Without a stream that has followed it there is nothing that would read it.
    if (!cursors.get(own, { kind })) return
    const sql = 'INSERT INTO ownership_tombstone (kind, id, at) VALUES (?, ?, ?) RETURNING seq'
    const seq = Number(own.row(sql, [kind, id, clock.now()])?.[0])
    if (seq % BOUND_EVERY === 0) bound(own, MOST)
    db.onDurable(t, () => {
      for (const stream of this.#streams.values()) stream.told(kind)
    })
  }
}
