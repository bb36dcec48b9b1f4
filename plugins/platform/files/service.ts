import type { DiskSpace, PluginKernel } from '../../../kernel/plugin.js'
import { type TextFile, textFile } from './text-file.js'

/** Hands out the files below the home; on a full disk they are written with what is kept for that. */
export class FilesService {
  constructor(private readonly kernel: PluginKernel<{ disk: typeof DiskSpace }>) {}

  readonly file = (...path: string[]): TextFile => {
    const { home, needs } = this.kernel
    return textFile(home.path(...path), { room: needs.disk.room })
  }
}
