import type { Consumer, DiskSpace, PluginKernel } from '../../../kernel/plugin.js'
import type { JournalsApi } from './api.js'
import { openJournal } from './open.js'

/** Opens journals below the home, on the kernel's clock. */
export class JournalsService {
  constructor(private readonly kernel: PluginKernel<{ disk: typeof DiskSpace }>) {}

  /** The API for one plugin: its journals are closed with its scope. */
  for({ scope }: Consumer): JournalsApi {
    const { home, clock, needs } = this.kernel
    return {
      open: async (path, options) => {
        const dir = home.path(...path)
        const journal = await openJournal({ intact: true, ...options, dir, clock, room: needs.disk.room })
        journal.close = scope.defer(`journal ${path.join('/')}`, journal.close.bind(journal))
        return journal
      },
    }
  }
}
