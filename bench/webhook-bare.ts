// What anybody would write for a webhook: a fastify that checks the HMAC of the raw body. node webhook-bare.ts SECRET, forked.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { answer } from './child.js'

const [secret = ''] = process.argv.slice(2)
const app = fastify()
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
app.post('/hook', async (request, reply) => {
  const seconds = String(request.headers['x-service-webhook-timestamp'])
  const mac = createHmac('sha256', secret).update(`${seconds}.`)
  const expected = Buffer.from(`sha256=${mac.update(request.body as Buffer).digest('hex')}`)
  const given = Buffer.from(String(request.headers['x-service-webhook-signature']))
  const isRight = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isRight || Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return reply.code(401).send({})
  return { result: { matched: 1, runs: [] } }
})
await app.listen({ port: 0, host: '127.0.0.1' })

const handlers = {
  port: () => (app.server.address() as AddressInfo).port,
  cpu() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
}
export type WebhookBare = typeof handlers
answer(handlers)
