import type { AcpApi } from './api.js'
import type { AgentClient, ClientContext } from './client.js'
import type { K } from './needs.js'
import { Clarifications } from './requests/clarifications.js'
import { Permissions } from './requests/permissions.js'
import { Terminals } from './requests/terminals.js'
import { ToolRights } from './requests/tool-rights.js'
import { AcpSettings } from './settings.js'

/** Makes the clients of agents. */
export class AcpService implements AcpApi {
  constructor(private readonly kernel: K) {}

  clientFor(session: ClientContext): AgentClient {
    const { clock, ids, config, redact, needs } = this.kernel
    const own = { clock, ids, timeoutMs: config.get(AcpSettings.permissionTimeout) }
    const permissions = new Permissions({
      ...session,
      ...own,
      tools: new ToolRights(session.tools),
      get territory() {
        return session.territory()
      },
    })
    const clarifications = new Clarifications({
      ...session,
      ...own,
      record: session.note,
      expired: turnId => permissions.expire(turnId),
    })
    const terminals = new Terminals({ ...session, ...own })
    return {
      permissions,
      clarifications,
      terminals,
      async connect(agent) {
        // The SDK loads with the first process, so an idle daemon saves its memory.
        const [{ AgentProcess }, { ClientMethods }] = await Promise.all([
          import('./process/agent-process.js'),
          import('./requests/client-methods.js'),
        ])
        return AgentProcess.connect({
          ...agent,
          clock,
          redact,
          guards: session.guards,
          version: needs.host.version,
          initializeTimeout: config.get(AcpSettings.initializeTimeout),
          newSessionTimeout: config.get(AcpSettings.newSessionTimeout),
          methods: new ClientMethods(permissions, clarifications, terminals, session.watch),
          refused: why => permissions.asking.refuse(why),
        })
      },
    }
  }
}
