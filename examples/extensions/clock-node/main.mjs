// An extension as a process in plain Node: a line of JSON in, a line of JSON out, everything for people on standard error.
import { createHmac } from 'node:crypto'
import { createInterface } from 'node:readline'

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** Requests of ours that wait for an answer, by id. */
const waiting = new Map()
let asked = 0
function ask(method, params = {}) {
  const id = ++asked
  send({ id, method, params })
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
}

const tools = {
  async now({ zone = 'UTC' }) {
    const { daemon } = await ask('observe/health')
    const time = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }).format()
    return { zone, time, told_by: `svc ${daemon.version}` }
  },
}

// The daemon gives the process what the vault has for it: svc vault put vault:extensions/clock-node/env/CLOCK_KEY
const { CLOCK_KEY } = process.env
if (CLOCK_KEY) {
  tools.stamp = () => {
    const time = new Date().toISOString()
    return { time, signature: createHmac('sha256', CLOCK_KEY).update(time).digest('hex') }
  }
}

const methods = {
  initialize({ protocol_version, extension, capabilities }) {
    return {
      protocol_version,
      extension_info: { name: extension.name, version: extension.version },
      accepted_capabilities: { provides: capabilities.provides, permissions: capabilities.granted_permissions },
      implemented_methods: ['health_check', 'shutdown', 'provide_tools', 'tools/call'],
      supported_hook_events: [],
      supports: { health_check: true },
    }
  },
  health_check: () => ({ healthy: true }),
  shutdown() {
    // The answer goes out first.
    setImmediate(() => process.exit(0))
    return { acknowledged: true }
  },
  provide_tools: () => ({ tools: Object.keys(tools).map(id => ({ id, handler: id })) }),
  'tools/call': ({ tool, input }) => tools[tool](input ?? {}),
}

createInterface({ input: process.stdin })
  .on('line', async line => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method === undefined) {
      const { resolve, reject } = waiting.get(id)
      waiting.delete(id)
      return error ? reject(new Error(error.message)) : resolve(result)
    }
    try {
      send({ id, result: await methods[method](params) })
    } catch (failure) {
      send({ id, error: { code: -32000, message: failure.message } })
    }
  })
  // The daemon is gone.
  .on('close', () => process.exit(0))
