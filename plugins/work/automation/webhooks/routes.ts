import { describe } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import { WebhookReply } from '../../../../schemas/automation.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

/** Common to both webhook routes. They are public: the signature authenticates the delivery. */
const delivery = {
  method: 'POST',
  public: true,
  listeners: 'tcp',
  headers: {
    'X-Service-Webhook-Timestamp': { required: false },
    'X-Service-Webhook-Signature': { required: false },
    'X-Service-Webhook-Delivery-Id': { required: false },
    'Webhook-Id': { required: false },
    'Webhook-Timestamp': { required: false },
    'Webhook-Signature': { required: false },
    'X-Hub-Signature-256': { required: false },
    'X-GitHub-Event': { required: false },
  },
  // Any content type is accepted. A body that is not a JSON object is only available as `payload`.
  body: { as: 'raw', types: ['application/json', '*/*'] },
  bodyLimit: 1024 * 1024,
  audited: false,
  replies: { 200: WebhookReply },
} as const

export const webhookRoutes = [
  route({
    ...delivery,
    path: '/api/webhooks/global/{endpoint}',
    summary: 'Receive a signed webhook delivery for a global trigger',
    handle: async (self, { params, headers, body, actor, id }) =>
      ok({ result: await self.webhooks.deliver({ endpoint: params.endpoint, headers, body, actor, cause: id }) }),
  }),
  route({
    ...delivery,
    path: '/api/webhooks/workspaces/{workspace_id}/{endpoint}',
    summary: 'Receive a signed webhook delivery for a trigger of a workspace',
    handle: async (self, { params, headers, body, actor, id }) => {
      const { workspace_id: workspaceId, endpoint } = params
      return ok({ result: await self.webhooks.deliver({ workspaceId, endpoint, headers, body, actor, cause: id }) })
    },
  }),
]
