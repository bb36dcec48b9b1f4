/** What the plugin disk tells of free space, for replies of other plugins. */
import type { DiskRoom } from '../../../kernel/plugin.js'
import type { DiskHealth } from '../../../schemas/daemon.js'

/** Room on the file system of the home as it is now; without `free_bytes` where the system does not tell. */
export async function diskHealth(disk: DiskRoom): Promise<DiskHealth> {
  const free = await disk.look()
  return { status: disk.writable ? 'ok' : 'full', ...(Number.isFinite(free) ? { free_bytes: free } : {}) }
}
