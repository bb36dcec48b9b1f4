import { mkdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import type { ExtensionHostHandlers } from './extension-host.js'
import type { ExtensionImportHandlers } from './extension-imports.js'
import { NAME } from './extension-module.js'
import { median, ms, pairs, pause, timed } from './measure.js'

const RATE = 500
const OTHERS = '/api/workspaces'
const OWN = `/api/ext/${NAME}/3`
const STATIC = 200

interface Traffic {
  readonly asked: number
  readonly failed: number
  /** Milliseconds from when a request was due. */
  readonly p99: number
}

/** Requests at a fixed rate, whatever the answers do, until `work` is done. */
export async function traffic(socketPath: string, url: string, rate: number, work: Promise<unknown>): Promise<Traffic> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 32 })
  const times: number[] = []
  const open: Promise<void>[] = []
  let failed = 0
  let over = false
  const done = work.finally(() => {
    over = true
  })
  const began = performance.now()
  for (let n = 0; !over; n++) {
    const due = began + (n * 1000) / rate
    if (due > performance.now()) await pause(due - performance.now())
    open.push(
      get(socketPath, url, agent).then(status => {
        times.push(performance.now() - due)
        if (status !== 200) failed++
      }),
    )
  }
  await Promise.all([done, ...open])
  agent.destroy()
  times.sort((a, b) => a - b)
  return { asked: times.length, failed, p99: times[Math.floor(times.length * 0.99)] ?? 0 }
}

function get(socketPath: string, url: string, agent: http.Agent): Promise<number | undefined> {
  return new Promise(resolve => {
    http
      .get({ socketPath, path: url, agent }, response => {
        response.resume()
        response.once('end', () => resolve(response.statusCode))
      })
      .once('error', () => resolve(undefined))
  })
}

/** Extensions that come, go and change while requests run, a thousand reloads, and a start with many of them. */
export async function benchExtensionHost(context: Context): Promise<void> {
  const { program, quick, report } = context
  const lasting = quick ? 1500 : 8000
  const child = Child.start<ExtensionHostHandlers>(program('extension-host'))
  const socket = await child.call('start')
  await traffic(socket, OTHERS, RATE, pause(1000))
  const quiet = await traffic(socket, OTHERS, RATE, pause(lasting))
  const coming = child.call('cycles', lasting)
  const loading = await traffic(socket, OTHERS, RATE, coming)
  const changing = child.call('reloads', lasting)
  const own = await traffic(socket, OWN, RATE / 5, changing)
  const count = quick ? 100 : 1000
  const churn = await child.call('churn', count)
  await child.kill()
  const bare = Child.start<ExtensionImportHandlers>(program('extension-imports'))
  await bare.call('start')
  const imported = await bare.call('churn', count)
  await bare.kill()
  const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
  report.section('Extensions that come and go', [
    {
      what: `${await coming} loads and unloads, requests to others`,
      ours: `p99 ${ms(loading.p99)}, ${loading.failed} of ${loading.asked} failed`,
      baseline: `quiet: p99 ${ms(quiet.p99)}`,
      ratio: loading.p99 / quiet.p99,
      value: loading.failed,
      target: { atMost: 0, unit: 'failed' },
    },
    {
      what: `${await changing} reloads, requests to its own routes`,
      ours: `p99 ${ms(own.p99)}, ${own.failed} of ${own.asked} failed`,
      value: own.failed,
      target: { atMost: 0, unit: 'failed' },
    },
    {
      what: `${count} reloads, memory for each`,
      ours: `${kib(churn.grown)}, source ${kib(churn.source)}`,
      baseline: `bare import: ${kib(imported)}`,
      ratio: churn.grown / imported,
      value: churn.grown / churn.source,
      target: { atMost: 20, unit: 'times the source' },
    },
    {
      what: `${count} reloads, handles, taps, routes and timers left`,
      ours: churn.same ? 'none' : churn.differ,
      value: churn.same ? 0 : 1,
      target: { atMost: 0 },
    },
  ])
  await coldStart(context)
}

async function coldStart({ program, quick, report, temp }: Context): Promise<void> {
  const homes = { none: path.join(temp, 'none'), many: path.join(temp, 'many') }
  for (const home of Object.values(homes)) mkdirSync(path.join(home, 'extensions'), { recursive: true })
  for (let n = 0; n < STATIC; n++) {
    const folder = path.join(homes.many, 'extensions', `static-${n}`)
    mkdirSync(path.join(folder, 'bundles'), { recursive: true })
    writeFileSync(
      path.join(folder, 'extension.toml'),
      `name = "static-${n}"\nversion = "1.0.0"\n[resources]\nbundles = ["bundles"]\n`,
    )
    writeFileSync(path.join(folder, 'bundles/one.toml'), 'name = "one"\n[[profiles]]\nname = "default"\n')
  }
  const start = (home: string, ...more: string[]) =>
    timed([process.execPath, program('extension-start'), home, ...more])
  // Written just now, a manifest is not remembered: time stamps are too coarse for that.
  await pause(2100)
  for (const home of Object.values(homes)) for (let n = 0; n < 2; n++) await start(home, 'loaded')
  const rounds = quick ? 3 : 9
  const ready = await pairs(
    rounds,
    () => start(homes.many),
    () => start(homes.none),
  )
  const loaded = []
  for (let n = 0; n < Math.min(rounds, 5); n++) loaded.push(await start(homes.many, 'loaded'))
  report.section('Start with extensions', [
    {
      what: `cold start with ${STATIC} static extensions`,
      ours: ms(ready.a),
      baseline: `none: ${ms(ready.b)}`,
      ratio: ready.ratio,
      value: ready.ratio,
      target: { atMost: 1.3 },
    },
    {
      what: `until all ${STATIC} are loaded`,
      ours: ms(median(loaded)),
      baseline: `none: ${ms(ready.b)}`,
      ratio: median(loaded) / ready.b,
    },
  ])
}
