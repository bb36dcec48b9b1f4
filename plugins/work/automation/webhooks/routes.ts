import { describe, throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import { WebhookReply } from '../../../../schemas/automation.js'
import { DaemonErrors } from '../../../desk/daemon/api.js'
import { AutomationErrors } from '../api.js'
import type { AutomationService } from '../service.js'
import { schemeHeaders } from './scheme-table.js'
import type { Accepted } from './webhooks.js'

const route = routeOf<AutomationService>(describe('Automation'))

/** Common to both webhook routes. They are public: the signature authenticates the delivery. */
const delivery = {
  method: 'POST',
  public: true,
  listeners: 'tcp',
  headers: Object.fromEntries(['Content-Type', ...schemeHeaders].map(name => [name, { required: false }])),
  // Any content type is accepted. A body that is neither a JSON object nor a form is only available as `payload`.
  body: { as: 'raw', types: ['application/json', '*/*'] },
  bodyLimit: 1024 * 1024,
  audited: false,
  replies: { 200: WebhookReply },
  with: [
    throws(
      AutomationErrors.webhook_not_found,
      AutomationErrors.webhook_rate_limit,
      AutomationErrors.webhook_headers_invalid,
      AutomationErrors.webhook_secret_missing,
      AutomationErrors.webhook_signature_invalid,
      AutomationErrors.webhook_stale,
      AutomationErrors.webhook_replayed,
      AutomationErrors.automation_disabled,
      AutomationErrors.concurrency_limit,
      AutomationErrors.fire_limit,
      DaemonErrors.draining,
      DaemonErrors.home_held,
    ),
  ],
} as const

const replyOf = ({ challenge, ...result }: Accepted): WebhookReply => ({
  result,
  ...(challenge === undefined ? {} : { challenge }),
})

export const webhookRoutes = [
  route({
    ...delivery,
    path: '/api/webhooks/global/{endpoint}',
    summary: 'Receive a signed webhook delivery for a global trigger',
    handle: async (service, { params, headers, body, actor, id }) =>
      ok(replyOf(await service.webhooks.deliver({ endpoint: params.endpoint, headers, body, actor, cause: id }))),
  }),
  route({
    ...delivery,
    path: '/api/webhooks/workspaces/{workspace_id}/{endpoint}',
    summary: 'Receive a signed webhook delivery for a trigger of a workspace',
    handle: async (service, { params, headers, body, actor, id }) => {
      const { workspace_id: workspaceId, endpoint } = params
      return ok(replyOf(await service.webhooks.deliver({ workspaceId, endpoint, headers, body, actor, cause: id })))
    },
  }),
]
