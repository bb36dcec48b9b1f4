// A process of an extension that does what it is told: `node child.mjs '<JSON>'`, { at, reply, ignore, publish }, and by `tools/call`.
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'

const { at = '', reply = {}, ignore = [], publish } = JSON.parse(process.argv[2] ?? '{}')
const say = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const waiting = new Map()
let health = { healthy: true }
let asked = 0
/** Notifications of the daemon. */
const notified = []

const ask = (method, params) =>
  new Promise(resolve => {
    say({ id: `c${++asked}`, method, params })
    waiting.set(`c${asked}`, resolve)
  })
const flood = line => {
  const go = () => process.stdout.write(line.repeat(500), () => setImmediate(go))
  go()
}

const doings = {
  host: ({ method, params }) => ask(method, params),
  hosts: ({ method, times }) => Promise.all(Array.from({ length: times }, () => ask(method, {}))),
  notified: () => notified,
  'read-nothing-until': ({ file }) => {
    // The answer goes out first.
    setTimeout(() => process.stdin.pause())
    const timer = setInterval(() => {
      if (!existsSync(file)) return
      clearInterval(timer)
      process.stdin.resume()
    }, 10)
  },
  environment: () => process.env,
  greeting: () => greeting,
  garbage: () => flood('no message\n'),
  blank: () => flood('\n'),
  strangers: () => flood('{"jsonrpc":"2.0","id":"nobody asked","result":1}\n'),
  notifications: () => flood('{"jsonrpc":"2.0","method":"hello"}\n'),
  line: ({ bytes }) => process.stdout.write('x'.repeat(bytes)),
  grow: ({ bytes }) => {
    kept = Buffer.alloc(bytes, 'x')
  },
  // A thread starts a program, which is no child of the main thread.
  spawn: ({ argv }) => {
    new Worker(`require('node:child_process').spawn(...${JSON.stringify([argv[0], argv.slice(1)])})`, { eval: true })
  },
  exit: ({ code }) => process.exit(code),
  silent: () => new Promise(() => {}),
  refuse: () => Promise.reject(new Error('token s3cret-value is wrong')),
  unhealthy: () => {
    health = { healthy: false, message: 'the source is away' }
  },
  vague: () => {
    health = { status: 'ok' }
  },
  deaf: () => {
    lines.close()
    process.stdin.pause()
    setInterval(() => {}, 1000)
  },
  shout: () => {
    const text = `${'w'.repeat(99)}\n`.repeat(1000)
    const go = () => process.stderr.write(text, () => setImmediate(go))
    go()
  },
  say: ({ text }) => new Promise(resolve => process.stderr.write(text, resolve)),
}

let greeting
// biome-ignore lint/correctness/noUnusedVariables: what `grow` allocates stays in memory as long as it is referenced
let kept
const methods = {
  async initialize(params) {
    greeting = params
    if (at === 'initialize-host') await ask('resources/list', {}).then(answer => console.error(JSON.stringify(answer)))
    const { provides, granted_permissions: permissions, granted_resource_scopes: scopes } = params.capabilities
    if (publish) {
      const scope = { kind: scopes.includes('global') ? 'global' : 'workspace' }
      const { workspace_id = '' } = params.extension
      const desktop = { id: 'desk', name: publish, order: 0, purpose: 'standard', floating: [], groups: [] }
      const document = { version: 2, workspace_id, desktops: [desktop], windows: {}, overrides: {} }
      const spec = { version: 1, id: publish, display_name: publish, aspect: 'any', overflow: 'stack', document }
      const record = { kind: 'window_layout', id: publish, scope, spec }
      setTimeout(() =>
        ask('resources/snapshot', { source_version: 1, records: [record] }).then(answer =>
          console.error(JSON.stringify(answer)),
        ),
      )
    }
    return {
      protocol_version: '1',
      extension_info: { name: params.extension.name, version: params.extension.version },
      accepted_capabilities: { provides, permissions },
      implemented_methods: ['health_check', 'shutdown', 'provide_tools', 'tools/call'],
      supported_hook_events: [],
      supports: { health_check: true },
      ...reply,
    }
  },
  health_check: () => health,
  shutdown: ({ reason }) => {
    process.stderr.write(`shutdown: ${reason}\n`)
    setTimeout(() => process.exit(0))
    return { acknowledged: true }
  },
  provide_tools: () => ({ tools: [] }),
  'tools/call': params => doings[params.do]?.(params),
}

if (ignore.includes('SIGTERM')) process.on('SIGTERM', () => {})
if (at === 'exit') {
  process.stderr.write('nothing works: token=abcdefgh\n')
  process.exitCode = 3
} else if (at === 'garbage') flood('Welcome!\n')
else if (at === 'silent') setInterval(() => {}, 1000)
const lines = createInterface({ input: process.stdin })
if (at === 'exit' || at === 'silent') lines.close()
if (ignore.includes('end')) setInterval(() => {}, 1000)
lines.on('line', async line => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method === undefined) return waiting.get(id)?.({ result, error })
  if (ignore.includes(method)) return
  if (id === undefined) return notified.push({ method, params })
  try {
    say({ id, result: (await methods[method](params)) ?? null })
  } catch (failure) {
    say({ id, error: { code: -32000, message: failure.message } })
  }
})
