/** Replies of other plugins about free space. */
import type { DiskRoom } from '../../../kernel/plugin.js'
import type { DiskHealth } from '../../../schemas/daemon.js'

/** Current free space of the home's file system; without `free_bytes` where the system does not say. */
export async function diskHealth(disk: DiskRoom): Promise<DiskHealth> {
  const free = await disk.look()
  return { status: disk.writable ? 'ok' : 'full', ...(Number.isFinite(free) ? { free_bytes: free } : {}) }
}
