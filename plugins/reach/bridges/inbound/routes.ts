import { cli, describe, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import { BridgeRoute, ListBridgeRoutesReply } from '../../../../schemas/bridge-traffic.js'
import { BridgeErrors } from '../api.js'
import type { BridgesService } from '../service.js'
import { routes } from './table.js'

const route = routeOf<BridgesService>(describe('Bridges'))
const LIMIT = 1000

/** Routes of conversations. */
export const inboundRoutes: readonly Route<BridgesService>[] = [
  route({
    method: 'GET',
    path: '/api/bridges/{id}/routes',
    summary: 'List the conversations of a bridge with their sessions, most recently used first',
    replies: { 200: ListBridgeRoutesReply },
    with: [
      throws(BridgeErrors.bridge_not_found),
      tool('bridge_routes', ['bridges']),
      cli('bridge routes', {
        args: [{ name: 'id', summary: 'id of a bridge' }],
        view: show(
          ListBridgeRoutesReply,
          'routes',
          [
            { of: 'group_id', header: 'Group' },
            { of: 'peer_id', header: 'Peer' },
            { of: 'thread_id', header: 'Thread' },
            { of: 'session_id', header: 'Session' },
            { of: 'agent_name', header: 'Agent' },
            'last_activity_at~ago',
          ],
          { empty: 'no conversation yet' },
        ),
      }),
    ],
    handle: (service, { params, actor }) => {
      service.instances.found(params.id, actor)
      const found = service.inbound.conversations.list(params.id, LIMIT)
      return ok({
        routes: found.map(row =>
          routes.wire(row, BridgeRoute, { bridge_instance_id: row.bridgeId, routing_key_hash: row.key }),
        ),
      })
    },
  }),
]
