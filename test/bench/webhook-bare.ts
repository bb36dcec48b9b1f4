// A bare server for signed deliveries in a process of its own: node webhook-bare.ts SECRET, forked.
import { answer } from './child.js'
import { serveBare } from './webhook-server.js'

const [secret = ''] = process.argv.slice(2)
const port = await serveBare(secret, () => undefined)

const handlers = {
  port: () => port,
  cpu() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
}
export type WebhookBare = typeof handlers
answer(handlers)
