import type { PluginKernel } from '../../../kernel/plugin.js'
import type { HookAsked } from '../api.js'

/** So long events fire triggers after they happened. */
const KEPT_MS = 7 * 24 * 60 * 60_000

/** Requests that programs of hooks made for what runs of triggers led to. */
export const askedTable = `CREATE TABLE automation_asked (
    request TEXT NOT NULL UNIQUE, depth INTEGER NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX automation_asked_at ON automation_asked (at);`

/** Follows the depth of triggers through programs of hooks: nothing else tells whom a request is made for. */
export class AskedByHooks {
  /** @param depthBehind how many runs of triggers led to what a hook is run for */
  constructor(
    private readonly kernel: Pick<PluginKernel, 'db' | 'clock'>,
    private readonly depthBehind: (whom: HookAsked['whoms'][number]) => number,
  ) {}

  /** Resolves when it is durable, so that a restart does not forget it. */
  async note({ id, whoms }: HookAsked): Promise<void> {
    const depth = Math.max(0, ...whoms.map(this.depthBehind))
    if (depth === 0) return
    const { db, clock } = this.kernel
    await db.tx(t => {
      t.run('DELETE FROM automation_asked WHERE at < ?', [clock.now() - KEPT_MS])
      t.run('INSERT INTO automation_asked (request, depth, at) VALUES (?, ?, ?) ON CONFLICT (request) DO NOTHING', [
        id,
        depth,
        clock.now(),
      ])
    })
  }

  /** How many runs of triggers led to a request; 0 also for one that no hook made. */
  depthOf(request: string): number {
    return Number(this.kernel.db.row('SELECT depth FROM automation_asked WHERE request = ?', [request])?.[0] ?? 0)
  }
}
