import type { Tx } from '../../../../kernel/plugin.js'
import type { PeerMetrics } from '../../../../schemas/network/channels.js'
import type { K } from '../needs.js'

export type Direction = 'sent' | 'received' | 'rejected' | 'delivered'

interface Sum {
  readonly kind: string
  readonly direction: Direction
  readonly n: number
  readonly bytes: number
}

/** Message counts by peer, kind and outcome. */
export class Tally {
  constructor(private readonly kernel: K) {}

  add(t: Tx, workspaceId: string, peerId: string, kind: string, direction: Direction, bytes: number): void {
    t.run(
      `INSERT INTO network_tally (workspace_id, peer_id, kind, direction, n, bytes) VALUES (?, ?, ?, ?, 1, ?)
       ON CONFLICT (workspace_id, peer_id, kind, direction) DO UPDATE SET n = n + 1, bytes = bytes + excluded.bytes`,
      [workspaceId, peerId, kind, direction, bytes],
    )
  }

  /** Totals over all peers. */
  kinds(): readonly Sum[] {
    return this.kernel.db.all<Sum>(
      'SELECT kind, direction, sum(n) AS n, sum(bytes) AS bytes FROM network_tally GROUP BY kind, direction ORDER BY kind',
    )
  }

  ofPeer(workspaceId: string, peerId: string): PeerMetrics {
    const sums = this.kernel.db.all<Sum>(
      `SELECT '' AS kind, direction, sum(n) AS n, sum(bytes) AS bytes FROM network_tally
       WHERE workspace_id = ? AND peer_id = ? GROUP BY direction`,
      [workspaceId, peerId],
    )
    const metrics: Record<string, number> = { total_size_bytes: 0 }
    for (const { direction, n, bytes } of sums) {
      metrics[direction] = n
      metrics[`${direction}_size_bytes`] = bytes
      metrics.total_size_bytes = (metrics.total_size_bytes as number) + bytes
    }
    return metrics
  }
}
