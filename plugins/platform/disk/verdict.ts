import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'

const MIB = 2 ** 20
const GIB = 2 ** 30
/** Bytes of free space below which the home is low, and below which writes are about to fail. */
const LOW = GIB
const CRITICAL = GIB / 8

/**
 * The finding for so many free bytes on the home's file system.
 * @throws Error when that is unknown, which the doctor reports as `probe_failed`
 */
export function diskItem(free: number, writable = true): DiagnosticItem {
  if (!Number.isFinite(free)) throw new Error('the free space on the file system of the home is unknown')
  const common = { id: 'home.disk', category: 'home', title: 'Disk space' }
  const amount = free >= LOW ? `${(free / GIB).toFixed(1)} GiB` : `${(free / MIB).toFixed(1)} MiB`
  const text = `${amount} are free on the file system of the home`
  if (free >= LOW) return finding({ ...common, code: 'home_disk_space_ok', severity: 'info', message: text })
  const critical = free < CRITICAL
  return finding({
    ...common,
    code: critical ? 'home_disk_space_critical' : 'home_disk_space_low',
    severity: critical ? 'error' : 'warning',
    message: writable
      ? `only ${text}; free some before writes fail`
      : `only ${text}; new work is refused (507 disk_full) until more is free; stopping and deleting still work`,
  })
}
