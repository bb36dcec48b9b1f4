import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { KernelErrors, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import { NetworkUsageQuery } from '../../../../schemas/network/usage.js'
import { ConversationUsage } from '../../../../schemas/tasks.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { NetworkErrors } from '../api.js'
import type { NetworkService } from '../service.js'

const route = routeOf<NetworkService>(describe('Network'), runsCode(false))

/** Routes for the cost of wakes. */
export const wakeRoutes: readonly Route<NetworkService>[] = [
  route({
    method: 'GET',
    path: '/api/workspaces/{workspace_id}/network/usage',
    summary: 'Show the cost of wakes by messages, newest first',
    query: NetworkUsageQuery,
    replies: { 200: ConversationUsage },
    origins: ['agent_session'],
    with: [
      throws(...REFERENCE_ERRORS, KernelErrors.invalid_cursor, NetworkErrors.network_owner_uncharged),
      tool('network_usage', ['network']),
      cli('network usage', {
        workspace: 'workspace_id',
        args: [],
        view: show(
          ConversationUsage,
          'details',
          [
            { of: 'wake_id', header: 'Wake' },
            'channel',
            'state',
            { of: 'usage_state', header: 'Usage' },
            { of: 'charged_wall_time', header: 'Time' },
            { of: 'input_tokens', header: 'Input' },
            { of: 'output_tokens', header: 'Output' },
            { of: 'reserved_at~ago', header: 'When' },
          ],
          { empty: 'no message has woken a session' },
        ),
      }),
    ],
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok(service.usage.read(id, query))
    },
  }),
]
