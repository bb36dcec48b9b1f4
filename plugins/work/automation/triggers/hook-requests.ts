import type { HookRequest } from '../../hooks/api.js'
import type { K } from '../needs.js'

/** Events fire triggers up to this long after they happened. */
const KEPT_MS = 7 * 24 * 60 * 60_000

/** Requests made by hook programs, with the trigger depth they inherit. */
export const hookRequestsTable = `CREATE TABLE automation_asked (
    request TEXT NOT NULL UNIQUE, depth INTEGER NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX automation_asked_at ON automation_asked (at);`

/** Carries the trigger depth through hook programs, whose requests do not name their cause. */
export class HookRequests {
  /** @param depthBehind trigger depth of the subject of a hook run */
  constructor(
    private readonly kernel: K,
    private readonly depthBehind: (whom: HookRequest['whoms'][number]) => number,
  ) {}

  /** Resolves when the entry is durable. */
  async note({ id, whoms }: HookRequest): Promise<void> {
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

  /** Trigger depth of a request; 0 when no hook program made it. */
  depthOf(request: string): number {
    return Number(this.kernel.db.row('SELECT depth FROM automation_asked WHERE request = ?', [request])?.[0] ?? 0)
  }
}
