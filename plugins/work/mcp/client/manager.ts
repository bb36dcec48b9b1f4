import { messageOf } from '../../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import type { Server } from '../sources/declaration.js'
import { type Confined, confinedKey } from './confining.js'
import { Connection, type ConnectionWorld } from './connection.js'
import { KeptLists } from './kept-lists.js'
import type { Reached } from './reach.js'

/** Every server that somebody needed, by the key of its declaration and how it is confined; one of each, whoever asks. */
export class Manager {
  readonly #connections = new Map<string, Connection>()
  /** Ids of the sessions that asked for one that is confined. */
  readonly #users = new Map<Connection, Set<string>>()
  readonly #world: ConnectionWorld

  constructor(kernel: K, reach: (server: Server, confined: Confined | undefined) => Promise<Reached>) {
    const { clock, ids, version } = kernel
    const kept = new KeptLists(kernel.db)
    this.#world = {
      clock,
      ids,
      version,
      reach,
      kept: key => kept.read(key),
      listed: (key, told) =>
        void kept
          .keep(key, told, clock.now())
          .catch(error => kernel.log.warn(`a list of tools was not kept: ${messageOf(error)}`)),
      log: (text, fields) => kernel.log.warn(text, fields),
    }
  }

  /** The one of a server; it is started by whoever asks it for something. A confined one ends with the last session that used it. */
  of(server: Server, confined?: Confined, sessionId?: string): Connection {
    const key = confinedKey(server.key, confined)
    let connection = this.#connections.get(key)
    if (!connection || connection.state === 'closed') {
      connection = new Connection(server, this.#world, confined)
      this.#connections.set(key, connection)
    }
    if (confined && sessionId !== undefined) {
      const users = this.#users.get(connection)
      if (users) users.add(sessionId)
      else this.#users.set(connection, new Set([sessionId]))
    }
    return connection
  }

  /** A session has stopped: what was started for it alone ends. */
  async leave(sessionId: string): Promise<void> {
    for (const [connection, users] of [...this.#users]) {
      if (!users.delete(sessionId) || users.size > 0) continue
      this.#users.delete(connection)
      await this.#end(connection)
    }
  }

  /** That of a server, where somebody needed it already. */
  known({ key }: Pick<Server, 'key'>): Connection | undefined {
    const all = this.#of(key)
    return this.#connections.get(key) ?? all.find(({ state }) => state === 'ready') ?? all.at(-1)
  }

  /** It may be tried at once, however it is confined. */
  retry(server: Server): void {
    for (const connection of this.#of(server.key)) connection.retry()
  }

  /** Refuses to let go of a server of which a tool is being called. @throws Fault `mcp_server_in_use` */
  checkUnused(server: Server): void {
    const calls = this.#of(server.key).reduce((sum, one) => sum + one.calls, 0)
    if (calls > 0) throw McpErrors.mcp_server_in_use(`${server.name}: ${calls} calls of its tools are under way`)
  }

  /** Ends a server whose declaration is gone; calls under way fail. */
  async forget({ key }: Pick<Server, 'key'>): Promise<void> {
    await Promise.all(this.#of(key).map(connection => this.#end(connection)))
  }

  async close(): Promise<void> {
    const all = [...this.#connections.values()]
    this.#connections.clear()
    this.#users.clear()
    await Promise.all(all.map(connection => connection.close()))
  }

  #of(key: string): Connection[] {
    return [...this.#connections.values()].filter(({ server }) => server.key === key)
  }

  async #end(connection: Connection): Promise<void> {
    const key = confinedKey(connection.server.key, connection.confined)
    if (this.#connections.get(key) === connection) this.#connections.delete(key)
    this.#users.delete(connection)
    await connection.close()
  }
}
