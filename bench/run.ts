// npm run bench [-- --pairs N --seconds S]: every figure beside a baseline in the same run; ratios are what to read.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import fastify from 'fastify'
import { median, pairs, printRows, type Row, timed } from './measure.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
const option = (name: string, fallback: number) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? fallback : Number(process.argv[at + 1])
}
const pairCount = option('pairs', 15)
const seconds = option('seconds', 3)
const rows: Row[] = []
const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`
const mib = (value: number) => `${(value / 1024 / 1024).toFixed(0)} MiB`

const temp = mkdtempSync(path.join(os.tmpdir(), 'svc-bench-'))
const home = path.join(temp, 'home')
execFileSync('mkdir', ['-m', '700', home])
writeFileSync(path.join(home, 'config.json'), '{ "http": { "port": 0 } }')
const env = { ...process.env, SVC_HOME: home }
const socket = path.join(home, 'daemon.sock')
const nothing = [process.execPath, '-e', '0']

/** Starts the daemon and resolves when it answers. */
async function start() {
  const child = spawn(process.execPath, [path.join(root, 'dist/daemon.js')], { env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  for (;;) {
    if (await answers('/api/status/identity'))
      return { pid: child.pid as number, stop: () => child.kill('SIGTERM') && exited }
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

function answers(url: string, socketPath = socket): Promise<boolean> {
  return new Promise(resolve => {
    const request = http.get({ socketPath, path: url }, response => {
      response.resume()
      response.once('end', () => resolve(response.statusCode === 200))
    })
    request.once('error', () => resolve(false))
  })
}

const rss = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

async function load(socketPath: string, url: string, clients: number, body: string) {
  const argv = [
    '--import',
    'tsx',
    path.join(root, 'bench/load.ts'),
    socketPath,
    'PUT',
    url,
    String(clients),
    String(seconds),
    body,
  ]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', chunk => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  const result = JSON.parse(text) as { requests: number; seconds: number; p50: number; p99: number }
  return { ...result, rate: result.requests / result.seconds }
}

function syncP50(): number {
  const file = openSync(path.join(temp, 'sync'), 'w')
  const times = Array.from({ length: 200 }, () => {
    const began = performance.now()
    writeSync(file, Buffer.alloc(4096))
    fdatasyncSync(file)
    return performance.now() - began
  })
  closeSync(file)
  return median(times)
}

/** A bare echo in a process of its own, so that both servers have a core. */
async function echo(socketPath: string): Promise<never> {
  const app = fastify()
  app.get('/', async () => ({}))
  app.put('/echo/:id', async request => request.body)
  await app.listen({ path: socketPath })
  return new Promise(() => {})
}

if (process.argv.includes('--echo')) await echo(process.argv.at(-1) as string)

console.log(`node ${process.version}, ${os.cpus().length} cores, write and sync of 4 KiB p50 ${ms(syncP50())}`)
await (await start()).stop() // creates the catalog, warms the file cache

const cold = await pairs(
  pairCount,
  async () => {
    const began = performance.now()
    const daemon = await start()
    const took = performance.now() - began
    await daemon.stop()
    return took
  },
  () => timed(nothing),
)
rows.push({
  what: 'cold start until the API answers',
  ours: ms(cold.a),
  baseline: `node -e 0: ${ms(cold.b)}`,
  ratio: cold.ratio.toFixed(2),
})

const daemon = await start()
const status = await pairs(
  pairCount,
  () => timed([process.execPath, path.join(root, 'dist/svc.js'), 'status'], env),
  () => timed(nothing),
)
rows.push({
  what: 'svc status',
  ours: ms(status.a),
  baseline: `node -e 0: ${ms(status.b)}`,
  ratio: status.ratio.toFixed(2),
})

await new Promise(resolve => setTimeout(resolve, 3000))
const idle = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
await new Promise(resolve => setTimeout(resolve, 1000))
const [ours, bare] = [rss(daemon.pid), rss(idle.pid as number)]
idle.kill()
rows.push({ what: 'idle RSS', ours: mib(ours), baseline: `idle node: ${mib(bare)}`, ratio: (ours / bare).toFixed(2) })

const echoSocket = path.join(temp, 'echo.sock')
const echoing = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), '--echo', echoSocket], {
  stdio: ['ignore', 'ignore', 'inherit'],
})
while (!(await answers('/', echoSocket))) await new Promise(resolve => setTimeout(resolve, 20))
const body = JSON.stringify({
  scope: { kind: 'global' },
  spec: { note: '#', text: 'x'.repeat(200) },
  expected_version: 0,
})
for (const clients of [1, 16, 64]) {
  const base = await load(echoSocket, '/echo/#', clients, body)
  const put = await load(socket, '/api/resources/bench.note/#', clients, body)
  rows.push({
    what: `durable PUT, ${clients} client${clients > 1 ? 's' : ''}`,
    ours: `${put.rate.toFixed(0)}/s p50 ${ms(put.p50)}`,
    baseline: `bare echo: ${base.rate.toFixed(0)}/s p50 ${ms(base.p50)}`,
    ratio: (put.rate / base.rate).toFixed(2),
    ...(clients === 64 ? { target: 'at least 0.30' } : {}),
  })
}
echoing.kill()
await daemon.stop()
rmSync(temp, { recursive: true, force: true })
printRows(rows)
process.exit(0)
