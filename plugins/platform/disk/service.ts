import type { DiskRoom, DiskSpace, PluginKernel } from '../../../kernel/plugin.js'
import type { DiskHealth } from '../../../schemas/daemon.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { diskHealth } from './api.js'
import { diskItem } from './verdict.js'

/** Reports the free space that the kernel watches. */
export class DiskService {
  readonly #disk: DiskRoom

  constructor({ needs }: PluginKernel<{ disk: typeof DiskSpace }>) {
    this.#disk = needs.disk
  }

  /** One item. @throws Error where the system does not say how much space is free */
  async check(): Promise<readonly DiagnosticItem[]> {
    const free = await this.#disk.look()
    return [diskItem(free, this.#disk.writable)]
  }

  /** Parts of the status member `health`, from one check: persistence is degraded while nothing can be written. */
  async health(): Promise<{ disk: DiskHealth; persistence?: { status: 'degraded' } }> {
    const disk = await diskHealth(this.#disk)
    return disk.status === 'ok' ? { disk } : { disk, persistence: { status: 'degraded' } }
  }
}
