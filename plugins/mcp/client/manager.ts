import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { Processes } from '../../processes/api.js'
import type { Workspaces } from '../../workspaces/api.js'
import { McpErrors } from '../errors.js'
import type { Server } from '../sources/declaration.js'
import { Connection, type ConnectionWorld } from './connection.js'
import { KeptLists } from './kept-lists.js'
import type { Reached } from './reach.js'
import { reach } from './reach.js'

export type ManagerKernel = PluginKernel<{ processes: typeof Processes; workspaces: typeof Workspaces }>

/** Every server that somebody needed, by the key of its declaration; one of each, whoever asks. */
export class Manager {
  readonly #connections = new Map<string, Connection>()
  readonly #world: ConnectionWorld

  constructor(kernel: ManagerKernel, how: (server: Server) => Promise<Reached> = server => reach(kernel, server)) {
    const { clock, ids, version } = kernel
    const kept = new KeptLists(kernel.db)
    this.#world = {
      clock,
      ids,
      version,
      reach: how,
      kept: server => kept.read(server.key),
      listed: (server, told) =>
        void kept
          .keep(server.key, told, clock.now())
          .catch(error => kernel.log.warn(`a list of tools was not kept: ${messageOf(error)}`)),
      log: (text, fields) => kernel.log.warn(text, fields),
    }
  }

  /** The one of a server; it is started by whoever asks it for something. */
  of(server: Server): Connection {
    const known = this.#connections.get(server.key)
    if (known && known.state !== 'closed') return known
    const connection = new Connection(server, this.#world)
    this.#connections.set(server.key, connection)
    return connection
  }

  /** That of a server, where somebody needed it already. */
  known(server: Server): Connection | undefined {
    return this.#connections.get(server.key)
  }

  /** Refuses to let go of a server of which a tool is being called. @throws Fault `mcp_server_in_use` */
  checkUnused(server: Server): void {
    const calls = this.#connections.get(server.key)?.calls ?? 0
    if (calls > 0) throw McpErrors.mcp_server_in_use(`${server.name}: ${calls} calls of its tools are under way`)
  }

  /** Ends a server whose declaration is gone; calls under way fail. */
  async forget({ key }: Pick<Server, 'key'>): Promise<void> {
    const connection = this.#connections.get(key)
    this.#connections.delete(key)
    await connection?.close()
  }

  async close(): Promise<void> {
    const all = [...this.#connections.values()]
    this.#connections.clear()
    await Promise.all(all.map(connection => connection.close()))
  }
}
