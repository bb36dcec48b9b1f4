import { messageOf } from '../../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import type { Server } from '../sources/declaration.js'
import { type Confined, confinedKey } from './confining.js'
import { Connection, type ConnectionWorld } from './connection.js'
import { KeptLists } from './kept-lists.js'
import type { Reached } from './reach.js'

/** Connections by the key of the declaration and sandbox: one per key, shared by all callers. */
export class Manager {
  readonly #connections = new Map<string, Connection>()
  /** Ids of the sessions that use a sandboxed connection. */
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
      listed: (key, listedTools) =>
        void kept
          .keep(key, listedTools, clock.now())
          .catch(error => kernel.log.warn(`a list of tools was not kept: ${messageOf(error)}`)),
      log: (text, fields) => kernel.log.warn(text, fields),
    }
  }

  /** The connection of a server, which is opened on first use. A sandboxed one ends with the last session that used it. */
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

  /** Ends the connections that only this stopped session used. */
  async leave(sessionId: string): Promise<void> {
    for (const [connection, users] of [...this.#users]) {
      if (!users.delete(sessionId) || users.size > 0) continue
      this.#users.delete(connection)
      await this.#end(connection)
    }
  }

  /** The connection of a server, if it exists. */
  known({ key }: Pick<Server, 'key'>): Connection | undefined {
    const all = this.#of(key)
    return this.#connections.get(key) ?? all.find(({ state }) => state === 'ready') ?? all.at(-1)
  }

  /** Clears the back-off of all connections of a server. */
  retry(server: Server): void {
    for (const connection of this.#of(server.key)) connection.retry()
  }

  /** Refuses to remove a server with calls in progress. @throws Fault `mcp_server_in_use` */
  checkUnused(server: Server): void {
    const calls = this.#of(server.key).reduce((sum, one) => sum + one.calls, 0)
    if (calls > 0) throw McpErrors.mcp_server_in_use(`${server.name}: ${calls} calls of its tools are in progress`)
  }

  /** Ends the connections of a removed server; running calls fail. */
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
