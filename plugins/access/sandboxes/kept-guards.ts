import { SerialBy } from '../../../kernel/kit/serial.js'
import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import { cleanUp, type Guard } from './guard.js'

/**
 * Guards by the session, or the program, whose processes may still run: a daemon that was killed cleans up after them when it
 * starts again.
 */
export const guardTable = `CREATE TABLE sandboxes_guard (
  session_id TEXT PRIMARY KEY,
  guards TEXT NOT NULL
) STRICT`

/** What is looked after when the processes of a sandbox have ended. */
export class KeptGuards {
  readonly #turns = new SerialBy()

  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'log'>) {}

  /** After the end of an earlier daemon. */
  async start(): Promise<void> {
    const rows = this.kernel.db.all<{ session_id: string }>('SELECT session_id FROM sandboxes_guard')
    for (const { session_id: id } of rows) await this.release(id)
  }

  /** Those of processes that are about to start, after what earlier ones left is put aside. */
  async keep(id: string, guards: readonly Guard[]): Promise<void> {
    await this.putAside(id)
    const sql = 'INSERT OR REPLACE INTO sandboxes_guard (session_id, guards) VALUES (?, ?)'
    await this.kernel.db.tx(t => void t.run(sql, [id, JSON.stringify(guards)]))
  }

  /** Puts aside what was left; one at a time, for the end of a process and that of its session come together. */
  putAside(id: string, first: () => Promise<unknown> = async () => {}): Promise<void> {
    return this.#turns.run(id, async () => {
      await first()
      await this.#putAside(id)
    })
  }

  /** Nothing of it runs any more. */
  async release(id: string, first?: () => Promise<unknown>): Promise<void> {
    await this.putAside(id, first)
    await this.kernel.db.tx(t => void t.run('DELETE FROM sandboxes_guard WHERE session_id = ?', [id]))
  }

  async #putAside(id: string): Promise<void> {
    const row = this.kernel.db.get<{ guards: string }>('SELECT guards FROM sandboxes_guard WHERE session_id = ?', [id])
    for (const guard of row ? (JSON.parse(row.guards) as Guard[]) : []) {
      const aside = await cleanUp(guard, id).catch(error => {
        this.kernel.log.error('what a sandboxed agent left could not be put aside', { id, error: messageOf(error) })
        return []
      })
      if (aside.length > 0) {
        const text = 'a sandboxed agent made files that would run code outside of it; they were renamed'
        this.kernel.log.warn(text, { session: id, files: aside.join(', ') })
      }
    }
  }
}
