import type { DiskSpace, PluginKernel } from '../../../kernel/plugin.js'
import { type TextFile, textFile } from './text-file.js'

/** Provides files below the home; on a full disk their writes use the reserve. */
export class FilesService {
  constructor(private readonly kernel: PluginKernel<{ disk: typeof DiskSpace }>) {}

  readonly file = (...path: string[]): TextFile => {
    const { home, needs } = this.kernel
    return textFile(home.path(...path), { room: needs.disk.room })
  }
}
