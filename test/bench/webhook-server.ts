import { createHmac, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'

/** What anybody would write for a webhook: a fastify that checks the HMAC of the raw body. Its port. */
export async function serveBare(
  secret: string,
  taken: (signature: string, body: Buffer) => Promise<void> | undefined,
): Promise<number> {
  const app = fastify()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
  app.post('/hook', async (request, reply) => {
    const seconds = String(request.headers['x-service-webhook-timestamp'])
    const body = request.body as Buffer
    const expected = `sha256=${createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex')}`
    const given = Buffer.from(String(request.headers['x-service-webhook-signature']))
    const isRight = given.length === expected.length && timingSafeEqual(given, Buffer.from(expected))
    if (!isRight || Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return reply.code(401).send({})
    await taken(expected, body)
    return { result: { matched: 1, runs: [] } }
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}
