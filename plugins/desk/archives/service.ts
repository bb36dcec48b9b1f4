import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { Serial } from '../../../kernel/kit/serial.js'
import type { Consumer, Migration, PluginKernel } from '../../../kernel/plugin.js'
import { type Archive, type ArchivesApi, SEGMENT } from './api.js'
import { Segments } from './segments.js'

/** A segment of this size is full. */
const FULL_BYTES = 16 * 1024 * 1024

/** Archives in `archives/<plugin>/<number>.db`. */
export class ArchivesService {
  readonly #segments: Segments

  constructor(private readonly kernel: PluginKernel) {
    this.#segments = new Segments(kernel.clock)
    kernel.scope.defer('archives', () => this.#segments.close())
  }

  for({ name }: Pick<Consumer, 'name'>): ArchivesApi {
    return { open: tables => this.#archive(name, tables) }
  }

  #archive(owner: string, tables: readonly Migration[]): Archive {
    const folder = this.kernel.home.path('archives', owner)
    const segment = (number: number) => ({ file: path.join(folder, `${number}.db`), owner, tables })
    const segments = async () => {
      const names = await readdir(folder).catch(() => [])
      const numbers = names.flatMap(name => SEGMENT.exec(name)?.[1] ?? []).map(Number)
      return numbers.sort((a, b) => a - b)
    }
    const adding = new Serial()
    return {
      segments,
      add: work =>
        adding.run(async () => {
          const newest = (await segments()).at(-1) ?? 1
          for (let number = newest; ; number++) {
            const written = await this.#segments.use(segment(number), true, async (db, bytes) => {
              if (bytes >= FULL_BYTES) return false
              await db.tx(work)
              return true
            })
            if (written) return number
          }
        }),
      use: (number, use) => this.#segments.use(segment(number), false, use),
      remove: number => this.#segments.remove(segment(number).file),
    }
  }
}
