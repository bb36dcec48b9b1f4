import { systemIds } from '../../kernel/ids.js'
import { systemClock } from '../../kernel/plugin.js'
import { RecordStore } from '../../kernel/records/store.js'
import { version } from '../../kernel/version.js'
import { type Started, startUpgraded } from '../../plugins/desk/backup/home/upgrade.js'
import { inTree } from '../../plugins/index.js'
import type { DaemonLog } from '../daemon/daemon-log.js'
import { configured } from './configured.js'

/** Starts the daemon on a home that another version may have used last. */
export function upgradeOf<T extends Started>(
  home: string,
  log: DaemonLog,
  start: (locked: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const own = inTree.map(({ name, surface: { tables = [] } }) => [name, tables] as const)
  const options = {
    home,
    version,
    schema: [['kernel', RecordStore.migrations] as const, ...own],
    clock: systemClock(),
    id: () => systemIds().hex(16),
    ...configured(home),
    log: (level: 'info' | 'warn' | 'error', msg: string) => log({ level, msg }),
  }
  return startUpgraded(options, start)
}
