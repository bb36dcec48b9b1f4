import { type Files, systemFiles } from '../../../plugins/delivery/installer/files.js'

/** Counts the calls of a process, and ends it with SIGKILL at one of them. */
export class Steps {
  #count: number | undefined

  /** @param at number of the call since {@link begin}, from 1; 0: none */
  constructor(private readonly at: number) {}

  /** From here on calls are counted. */
  begin(): void {
    this.#count = 0
  }

  get count(): number {
    return this.#count ?? 0
  }

  /** Ends the process at the wanted call, which may have come half way. */
  readonly step = async (halfWay?: () => Promise<void>): Promise<void> => {
    if (this.#count === undefined || ++this.#count !== this.at) return
    await halfWay?.()
    process.kill(process.pid, 'SIGKILL')
    await new Promise(() => {})
  }

  /** The object, before and behind whose calls of these names a step is. */
  around<T extends object>(target: T, names: readonly (keyof T)[]): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (!names.includes(name as keyof T)) return value.bind(target)
        return async (...args: unknown[]) => {
          await this.step()
          const result: unknown = await value.apply(target, args)
          await this.step()
          return result
        }
      },
    })
  }

  /** The disk, with a step before each of its calls. @param rename what is done in the place of one */
  files(rename: Files['rename'] = systemFiles.rename): Files {
    const { makeFolder, writeFile, syncFolder, remove } = systemFiles
    return {
      makeFolder: async folder => {
        await this.step()
        await makeFolder(folder)
      },
      writeFile: async (file, bytes, executable) => {
        await this.step(() => writeFile(file, bytes.subarray(0, bytes.length / 2), executable))
        await writeFile(file, bytes, executable)
      },
      syncFolder: async folder => {
        await this.step()
        await syncFolder(folder)
      },
      rename: async (from, to) => {
        await this.step()
        await rename(from, to)
      },
      remove: async target => {
        await this.step()
        await remove(target)
      },
    }
  }
}
