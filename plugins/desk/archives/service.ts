import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Consumer, Fault, type Migration, type PluginKernel, type Route } from '../../../kernel/plugin.js'
import { type Archive, ArchivedThings, type ArchivesApi, SEGMENT } from './api.js'
import { Segments } from './segments.js'

/** A segment of this size is full. */
const FULL_BYTES = 16 * 1024 * 1024

/** Archives in `archives/<plugin>/<number>.db`. */
export class ArchivesService {
  readonly #segments: Segments
  /** Names of the parameters in the path of a route, by their place; undefined where it has none. */
  readonly #parameters = new WeakMap<Route, readonly (string | undefined)[]>()

  constructor(private readonly kernel: PluginKernel) {
    this.#segments = new Segments(kernel.clock)
    kernel.scope.defer('archives', () => this.#segments.close())
  }

  for({ name }: Pick<Consumer, 'name'>): ArchivesApi {
    return { open: tables => this.#archive(name, tables) }
  }

  /** Called before each request: lets the owner of a thing in the path read it from the archive, or restore it. */
  admit(url: string, route: Route): Promise<Fault | undefined> | undefined {
    const names = this.#parametersOf(route)
    if (names.length === 0) return undefined
    const waiting = this.kernel.collect(ArchivedThings).flatMap(({ entry }) => {
      const at = names.indexOf(entry.parameter)
      const id = at < 0 ? undefined : url.split('?', 1)[0]?.split('/')[at]
      return (id !== undefined && entry.prepare(decoded(id), route.method === 'GET')) || []
    })
    if (waiting.length === 0) return undefined
    return Promise.all(waiting).then(
      () => undefined,
      error => {
        if (error instanceof Fault) return error
        throw error
      },
    )
  }

  #parametersOf(route: Route): readonly (string | undefined)[] {
    const known = this.#parameters.get(route)
    if (known) return known
    const names = route.path.split('/').map(part => /^\{(\w+)\}$/.exec(part)?.[1])
    const found = names.some(name => name !== undefined) ? names : []
    this.#parameters.set(route, found)
    return found
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

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // The route refuses such a path itself.
    return part
  }
}
