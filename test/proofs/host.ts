// Proves the plugin host: `npm run prove:host -- [--cycles N]`. A plugin with a route, a tap, a contribution, a loop and a
// reconciler is unloaded and loaded N times while requests for the routes of another one run: none fails, what is held is
// what was held, and memory stays flat. A second run, whose plugin keeps 160 kB a life, must be found out. A tap that stays
// after its release (kernel/hooks/taps.ts), a release left out of `#leave` (kernel/host/host.ts) or a generation that is
// swapped in before it is ready fails it.
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { createKernel } from '../../kernel/index.js'
import { operator } from '../../kernel/plugin.js'
import { base } from '../../plugins/index.js'
import { coming, type Steady, steady, Words } from './host/plugins.js'

const LANES = 4
const SAMPLES = 100
/** Megabytes that the median of the last tenth may lie over that of the tenth after the middle. */
const MAY_GROW = { heap: 1, rss: 8 }
/** A call of a hook after all reloads, as a multiple of one at first; a thousand taps that stayed would make it hundreds. */
const MAY_SLOW = 5

interface Run {
  readonly requests: number
  readonly wrong: readonly string[]
  readonly grown: { readonly heap: number; readonly rss: number }
}

/** One run on a home of its own; `wrong` says what was, at most ten times. */
async function churn(cycles: number, leak?: unknown[]): Promise<Run> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'svc-prove-'))
  const wrong: string[] = []
  const expect = (what: string, actual: unknown, wanted: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(wanted) && wrong.length < 10)
      wrong.push(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`)
  }
  const lives = { applied: 0, reconciled: 0 }
  const plugin = coming(lives, leak)
  let service: Steady | undefined
  const seen = (found: Steady) => {
    service = found
  }
  const kernel = await createKernel({ home, plugins: [...base, steady(seen), plugin], listen: ['socket'] })
  if (!service) throw new Error('the plugin that stays did not start')
  const { kernel: inside, heard } = service
  await inside.db.tx(t =>
    inside.records.put(t, operator, { kind: 'prove.thing', id: 'one', scope: { kind: 'global' }, spec: { n: 1 } }),
  )

  let running = true
  let requests = 0
  const agent = new http.Agent({ keepAlive: true, maxSockets: LANES })
  const lane = async () => {
    while (running) {
      const n = String(requests++)
      const status = await get(home, agent, `/api/steady/${n}`).catch(error => error.message)
      expect(`request ${n}`, status, 200)
    }
  }
  const lanes = Array.from({ length: LANES }, lane)
  const held = () => ({ plugins: kernel.host.plugins(), words: inside.collect(Words), faults: kernel.host.faults() })
  const taps = () => (heard as unknown as { readonly size: number }).size
  const before = held()
  const firstCall = await callTime(heard)
  const samples: { heap: number; rss: number }[] = []
  for (let cycle = 1; cycle <= cycles; cycle++) {
    await kernel.host.unload('coming')
    expect(`words without it, cycle ${cycle}`, inside.collect(Words), [])
    expect(`its state, cycle ${cycle}`, await kernel.host.load(plugin), { status: 'active' })
    const words: string[] = []
    await heard.call(words)
    expect(`taps called, cycle ${cycle}`, words, ['heard'])
    expect(`its route, cycle ${cycle}`, await get(home, agent, '/api/coming'), 200)
    if (cycle % Math.max(1, Math.floor(cycles / SAMPLES)) === 0) samples.push(memory())
  }
  expect('taps that are left', taps(), 1)
  const slower = (await callTime(heard)) / firstCall
  expect(`a call takes ${slower.toFixed(1)} times as long as at first: too long`, slower > MAY_SLOW, false)
  expect('what is held', held(), before)
  expect('lives', lives.applied, cycles + 1)
  expect('records reconciled', lives.reconciled >= cycles, true)
  running = false
  await Promise.all(lanes)
  agent.destroy()
  expect('errors while closing', await kernel.close(), [])
  await rm(home, { recursive: true })
  const grown = (of: 'heap' | 'rss') => median(samples.slice(-SAMPLES / 10), of) - median(middle(samples), of)
  return { requests, wrong, grown: { heap: grown('heap'), rss: grown('rss') } }
}

/** Milliseconds of a call of a hook with one tap: the best of several rounds, for requests are served meanwhile. */
async function callTime(hook: { call(words: string[]): Promise<void> }): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < 20; round++) {
    const startedAt = performance.now()
    for (let n = 0; n < 500; n++) await hook.call([])
    rounds.push((performance.now() - startedAt) / 500)
  }
  return Math.min(...rounds)
}

const middle = <T>(all: readonly T[]) => all.slice(all.length / 2, all.length / 2 + SAMPLES / 10)

function median(samples: readonly { heap: number; rss: number }[], of: 'heap' | 'rss'): number {
  const sorted = samples.map(sample => sample[of]).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

/** In megabytes, after what is garbage has gone. */
function memory(): { heap: number; rss: number } {
  if (!global.gc) throw new Error('start it with npm run prove:host, or node --expose-gc')
  global.gc()
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed / 2 ** 20, rss: rss / 2 ** 20 }
}

function get(home: string, agent: http.Agent, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = http.get({ socketPath: path.join(home, 'daemon.sock'), path: url, agent }, response => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
    })
    request.on('error', reject)
  })
}

/** Prints one line a run; returns what is wrong with it. */
async function prove(name: string, cycles: number, leak?: unknown[]): Promise<string[]> {
  const startedAt = performance.now()
  const { requests, wrong, grown } = await churn(cycles, leak)
  const flat = grown.heap <= MAY_GROW.heap && grown.rss <= MAY_GROW.rss
  const problems = [...wrong]
  const text = `heap ${grown.heap.toFixed(1)} MB, memory ${grown.rss.toFixed(1)} MB`
  if (leak && flat) problems.push(`160 kB a life were not noticed: ${text}`)
  if (!leak && !flat) problems.push(`memory grew: ${text}`)
  for (const problem of problems) console.log(`FAIL  ${name}  ${problem}`)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  if (problems.length === 0) console.log(`ok    ${name}  ${cycles} cycles, ${requests} requests, ${text}  ${seconds} s`)
  return problems
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { cycles: { type: 'string' } } })
  const cycles = Number(values.cycles ?? 1000)
  if (!Number.isSafeInteger(cycles) || cycles < 20) throw new Error('--cycles takes a whole number from 20 on')
  const wrong = [...(await prove('flat', cycles)), ...(await prove('leak', Math.ceil(cycles / 5), []))]
  console.log(wrong.length === 0 ? 'the host is proven' : `${wrong.length} failures`)
  return wrong.length === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  return 2
})
