// The process of an adapter whose platform is an HTTP server: `node adapter.mjs <port>`. It hands on what the platform has, again and
// again until the daemon has it durably, and tells the platform what it is told to.
import { createInterface } from 'node:readline'

const [port] = process.argv.slice(2)
const methods = [
  'health_check',
  'shutdown',
  'bridges/deliver',
  'bridges/targets/snapshot',
  'bridges/instances/set',
  'bridges/settle',
]
const waiting = new Map()
let asked = 0
let instance

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const ask = (method, params) =>
  new Promise((resolve, reject) => {
    waiting.set(`c${++asked}`, { resolve, reject })
    send({ id: `c${asked}`, method, params })
  })

/** Throws where the platform gives no answer: what became of the request is not known then. */
async function platform(path, body) {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: JSON.stringify(body) })
  return reply.json()
}

async function listen(id) {
  for (;;) {
    try {
      for (const event of await platform('/unseen', {})) {
        await ask('bridges/messages/ingest', { bridge_instance_id: id, ...event })
        await platform('/seen', { key: event.idempotency_key })
      }
    } catch {
      // It comes again.
    }
    await sleep(20)
  }
}

function open(managed) {
  const [first] = managed
  if (!first || instance) return
  instance = first.instance.id
  void ask('bridges/instances/report_state', { bridge_instance_id: instance, status: 'ready' }).then(() =>
    listen(instance),
  )
}

async function answer(method, params) {
  switch (method) {
    case 'initialize':
      setTimeout(() => open(params.runtime?.bridge?.managed_instances ?? []), 10)
      return {
        protocol_version: '1',
        extension_info: params.extension,
        accepted_capabilities: {
          provides: params.capabilities.provides,
          permissions: params.capabilities.granted_permissions,
        },
        implemented_methods: methods,
      }
    case 'health_check':
      return { healthy: true }
    case 'shutdown':
      setTimeout(() => process.exit(0), 10)
      return { acknowledged: true }
    case 'bridges/instances/set':
      open(params.managed_instances)
      return {}
    case 'bridges/deliver':
      return platform('/deliver', params.delivery)
    case 'bridges/settle':
      return platform('/settle', params.delivery)
    case 'bridges/targets/snapshot':
      return { targets: [] }
    default:
      throw new Error(`unknown: ${method}`)
  }
}

const lines = createInterface({ input: process.stdin })
lines.on('line', async line => {
  const message = JSON.parse(line)
  if (message.method === undefined) {
    const one = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.error) one?.reject(new Error(message.error.message))
    else one?.resolve(message.result)
    return
  }
  try {
    send({ id: message.id, result: await answer(message.method, message.params ?? {}) })
  } catch (error) {
    send({ id: message.id, error: { code: -32000, message: String(error?.message ?? error) } })
  }
})
lines.on('close', () => process.exit(0))
