import type { Actor, Db } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { Farewell } from '../oauth/farewells.js'
import { bindingOf } from '../oauth/login-status.js'
import type { Logins } from '../oauth/logins.js'
import type { Server } from '../sources/declaration.js'
import type { Found } from '../sources/sources.js'
import { ownSecrets, references } from './own-secrets.js'
import type { Vanishing } from './vanishing.js'

/** A server whose declaration is about to go, or to become another one. */
export interface Going {
  readonly id: string
  readonly binding: string
  readonly farewell: Farewell
}

/**
 * Takes the login and the secrets of a server along when its declaration goes. It is noted before the file is written: after a
 * kill in between, the next start looks whether the declaration went.
 */
export class Leaving {
  constructor(
    private readonly db: Db,
    private readonly logins: Logins,
    private readonly vanishing: Vanishing,
    private readonly declared: (workspaceId: string | undefined) => Promise<Found>,
  ) {}

  /** Notes what the server would leave. */
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

  /** The file was not written. */
  cancel({ id }: Going): Promise<void> {
    return this.logins.farewells.drop(id)
  }

  /** The file was written: the login goes where it was for another declaration, secrets where no server names them any more. */
  async end({ id, binding, farewell }: Going, actor?: Actor): Promise<void> {
    const { servers } = await this.declared(farewell.workspaceId)
    const isGone = !servers.some(server => bindingOf(server) === binding)
    if (isGone) await this.logins.forget(binding, actor)
    const named = new Set(servers.flatMap(({ declaration }) => references(declaration)))
    const secrets = farewell.secrets.filter(reference => !named.has(reference))
    await this.logins.farewells.carryOut(id, { ...farewell, secrets }, actor)
    if (isGone) await this.vanishing.drop(binding)
  }

  /** What a daemon before this one began. A source that cannot be read may declare the server: then it waits for another start. */
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
