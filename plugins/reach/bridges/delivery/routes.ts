import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { clip } from '../../../../kernel/kit/text.js'
import { iso, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  type BridgeDelivery,
  BridgeDeliveryReply,
  ListBridgeDeliveriesQuery,
  ListBridgeDeliveriesReply,
} from '../../../../schemas/bridge-traffic.js'
import { undo } from '../../../desk/changes/api.js'
import { BridgeErrors } from '../api.js'
import type { BridgesService } from '../service.js'
import type { Listed } from './delivery.js'

const route = routeOf<BridgesService>(describe('Bridges'))
const ONE = '/api/bridges/{id}/deliveries'
const id = { name: 'id', summary: 'id of a bridge' } as const
const deliveryId = { name: 'delivery_id', summary: 'id of a delivery' } as const
const LIMIT = 50
const PREVIEW = 200
const { bridge_not_found, bridge_delivery_not_found, bridge_delivery_not_failed, bridge_delivery_text_gone } =
  BridgeErrors

/** Routes of messages on their way out. */
export const deliveryRoutes: readonly Route<BridgesService>[] = [
  route({
    method: 'GET',
    path: ONE,
    summary: 'List the messages of a bridge: failed ones first, then pending ones, then the newest',
    query: ListBridgeDeliveriesQuery,
    replies: { 200: ListBridgeDeliveriesReply },
    with: [
      throws(bridge_not_found),
      tool('bridge_deliveries', ['bridges']),
      cli('bridge deliveries', {
        args: [id],
        view: show(
          ListBridgeDeliveriesReply,
          'deliveries',
          [
            'id',
            'state',
            'kind',
            'target',
            'created_at~ago',
            { of: 'reason', header: 'Why', below: true },
            { of: 'text', header: 'Text', below: true },
          ],
          { empty: 'no messages' },
        ),
      }),
    ],
    handle: (service, { params, query, actor }) => {
      service.instances.found(params.id, actor)
      const found = service.deliveries.list(params.id, query.state, query.limit ?? LIMIT)
      return ok({ deliveries: found.map(listed => wireOf(service, listed)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/{delivery_id}/resend`,
    summary: 'Resend a failed message',
    replies: { 200: BridgeDeliveryReply },
    with: [
      undo({ by: 'never', why: 'a sent message cannot be withdrawn' }),
      runsCode(false),
      throws(bridge_not_found, bridge_delivery_not_found, bridge_delivery_not_failed, bridge_delivery_text_gone),
      cli('bridge resend', { args: [id, deliveryId], view: show(BridgeDeliveryReply, 'delivery', ['id', 'state']) }),
    ],
    handle: async (service, { params, actor }) => {
      service.instances.found(params.id, actor)
      return ok({ delivery: wireOf(service, await service.deliveries.resend(params.id, params.delivery_id)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/{delivery_id}/discard`,
    summary: 'Discard a message that failed, is pending, or may have arrived',
    essential: true,
    replies: { 200: BridgeDeliveryReply },
    with: [
      undo({ by: 'never', why: 'a discarded message is not stored' }),
      runsCode(false),
      throws(bridge_not_found, bridge_delivery_not_found, bridge_delivery_not_failed),
      cli('bridge discard', { args: [id, deliveryId], view: show(BridgeDeliveryReply, 'delivery', ['id', 'state']) }),
    ],
    handle: async (service, { params, actor }) => {
      service.instances.found(params.id, actor)
      return ok({ delivery: wireOf(service, await service.deliveries.discard(params.id, params.delivery_id)) })
    },
  }),
]

function wireOf(service: BridgesService, { delivery, parts, standing }: Listed): BridgeDelivery {
  const { id, bridgeId, kind, source, target, sessionId, turnId, createdAt, endedAt } = delivery
  return {
    ...{ id, bridge_instance_id: bridgeId, kind, source, state: standing.state },
    ...(standing.reason !== undefined && { reason: standing.reason }),
    target: service.routeOf(target),
    text: clip(parts.map(part => part.lastText ?? part.text).join('\n'), PREVIEW),
    parts: parts.length,
    attempts: parts.reduce((sum, { attempts }) => sum + attempts, 0),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(turnId !== undefined && { turn_id: turnId }),
    created_at: iso(createdAt),
    ...(endedAt !== undefined && { ended_at: iso(endedAt) }),
  }
}
