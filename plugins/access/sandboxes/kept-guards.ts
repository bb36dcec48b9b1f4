import { SerialBy } from '../../../kernel/kit/serial.js'
import { column, table } from '../../../kernel/kit/table.js'
import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import { cleanUp, type Guard } from './guard.js'

/**
 * Guards of sessions and programs whose processes may still run. They are stored, so that the next start can clean up after a
 * killed daemon.
 */
export const guardTable = `CREATE TABLE sandboxes_guard (
  session_id TEXT PRIMARY KEY,
  guards TEXT NOT NULL
) STRICT`

export const kept = table('sandboxes_guard', { session_id: column.text(), guards: column.json<readonly Guard[]>() })

/** Cleans up guarded paths after the processes of a sandbox have ended. */
export class KeptGuards {
  readonly #turns = new SerialBy()

  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'log'>) {}

  /** Cleans up after an earlier daemon. */
  async start(): Promise<void> {
    for (const { session_id: id } of kept.all(this.kernel.db)) await this.release(id)
  }

  /** Stores the guards of processes that are about to start, after cleaning up after earlier ones. */
  async keep(id: string, guards: readonly Guard[]): Promise<void> {
    await this.putAside(id)
    await this.kernel.db.tx(t => kept.replace(t, { session_id: id, guards }))
  }

  /** Moves remaining files aside. Serialized, because the end of a process and the end of its session coincide. */
  putAside(id: string, first: () => Promise<unknown> = async () => {}): Promise<void> {
    return this.#turns.run(id, async () => {
      await first()
      await this.#putAside(id)
    })
  }

  /** Cleans up after the last process and deletes the guards. */
  async release(id: string, first?: () => Promise<unknown>): Promise<void> {
    await this.putAside(id, first)
    await this.kernel.db.tx(t => kept.delete(t, { session_id: id }))
  }

  async #putAside(id: string): Promise<void> {
    for (const guard of kept.get(this.kernel.db, { session_id: id })?.guards ?? []) {
      const aside = await cleanUp(guard, id).catch(error => {
        this.kernel.log.error('files left by a sandboxed agent could not be renamed', { id, error: messageOf(error) })
        return []
      })
      if (aside.length > 0) {
        const text = 'a sandboxed agent created files that would run code outside the sandbox; they were renamed'
        this.kernel.log.warn(text, { session: id, files: aside.join(', ') })
      }
    }
  }
}
