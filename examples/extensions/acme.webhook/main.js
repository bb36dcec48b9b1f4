import { createHmac, timingSafeEqual } from 'node:crypto'
import { describe } from 'svc/kit'
import { accepted, defineErrors, definePlugin, event, routeOf } from 'svc/plugin'
import { Events } from 'svc/plugins/events'
import * as v from 'valibot'

const Delivery = v.object({ delivery: v.string(), action: v.string() })
const Delivered = event('acme.delivered', Delivery)
const Errors = defineErrors({
  acme_no_secret: {
    status: 503,
    message: 'the daemon has no ACME_WEBHOOK_SECRET',
    next: 'start it with that variable',
  },
  acme_not_signed: { status: 401, message: 'the signature does not belong to this body' },
  acme_not_understood: { status: 422, message: 'the body is not a delivery' },
})

class Webhook {
  constructor(kernel) {
    this.kernel = kernel
  }

  /** The signature is over the bytes as they were sent: JSON that is parsed and written again has others. */
  async deliver(bytes, signature = '') {
    const secret = this.kernel.env.ACME_WEBHOOK_SECRET
    if (!secret) throw Errors.acme_no_secret()
    const wanted = Buffer.from(`sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`)
    const given = Buffer.from(signature)
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw Errors.acme_not_signed()
    const { success, output } = v.safeParse(v.pipe(v.string(), v.parseJson(), Delivery), bytes.toString())
    if (!success) throw Errors.acme_not_understood()
    await this.kernel.db.tx(t => this.kernel.needs.events.emit(t, Delivered, output, { subject: output.delivery }))
    return { delivery: output.delivery }
  }
}

const route = routeOf(describe('Webhook'))

export default definePlugin({
  name: 'acme.webhook',
  version: '1.0.0',
  requires: { events: Events },
  service: async () => Webhook,
}).surface({
  events: [Delivered],
  errors: [Errors],
  routes: [
    route({
      method: 'POST',
      path: '/api/ext/acme.webhook/deliveries',
      summary: 'Take a signed delivery',
      public: true,
      headers: { 'X-Acme-Signature': { required: true } },
      body: { as: 'raw', types: ['application/json'] },
      bodyLimit: 64 * 1024,
      replies: { 202: v.object({ delivery: v.string() }) },
      handle: async (service, { body, headers }) => accepted(await service.deliver(body, headers['x-acme-signature'])),
    }),
  ],
})
