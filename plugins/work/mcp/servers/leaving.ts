import type { Actor, Db } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { Farewell } from '../oauth/farewells.js'
import { bindingOf } from '../oauth/login-status.js'
import type { Logins } from '../oauth/logins.js'
import type { Server } from '../sources/declaration.js'
import type { Found } from '../sources/sources.js'
import { ownSecrets, references } from './own-secrets.js'
import type { Vanishing } from './vanishing.js'

/** A server whose declaration is about to be removed or changed. */
export interface Going {
  readonly id: string
  readonly binding: string
  readonly farewell: Farewell
}

/**
 * Removes the login and secrets of a server with its declaration. The intent is stored before the file is written:
 * after a crash, the next start checks whether the declaration is gone.
 */
export class Leaving {
  constructor(
    private readonly db: Db,
    private readonly logins: Logins,
    private readonly vanishing: Vanishing,
    private readonly declared: (workspaceId: string | undefined) => Promise<Found>,
  ) {}

  /** Stores which leftovers the server would have. */
  async begin(server: Server, workspace: Workspace | undefined): Promise<Going> {
    const binding = bindingOf(server)
    const farewell = {
      server: server.name,
      workspaceId: workspace?.id,
      secrets: ownSecrets(server),
      unless: binding,
    }
    const id = await this.db.tx(t => this.logins.farewells.note(t, farewell))
    return { id, binding, farewell }
  }

  /** Cancels the removal, because the file was not written. */
  cancel({ id }: Going): Promise<void> {
    return this.logins.farewells.drop(id)
  }

  /**
   * Completes the removal after the file was written: deletes the login if its declaration is gone, and secrets that no
   * server refers to.
   */
  async end({ id, binding, farewell }: Going, actor?: Actor): Promise<void> {
    const { servers } = await this.declared(farewell.workspaceId)
    const isGone = !servers.some(server => bindingOf(server) === binding)
    if (isGone) await this.logins.forget(binding, actor)
    const named = new Set(servers.flatMap(({ declaration }) => references(declaration)))
    const secrets = farewell.secrets.filter(reference => !named.has(reference))
    await this.logins.farewells.carryOut(id, { ...farewell, secrets }, actor)
    if (isGone) await this.vanishing.drop(binding)
  }

  /**
   * Continues removals of an earlier daemon. A source that cannot be read may still declare the server: then the
   * removal waits for another start.
   */
  async resume(signal: AbortSignal): Promise<void> {
    const { farewells } = this.logins
    for (const { id, ...farewell } of farewells.open()) {
      if (signal.aborted) return
      if (farewell.unless === undefined) {
        await farewells.carryOut(id, farewell)
        continue
      }
      const { servers, problems, disabled } = await this.declared(farewell.workspaceId)
      if (problems.length + disabled.length > 0) continue
      const binding = farewell.unless
      const isThere = servers.some(server => server.name === farewell.server && bindingOf(server) === binding)
      if (isThere) await farewells.drop(id)
      else await this.end({ id, binding, farewell })
    }
  }
}
