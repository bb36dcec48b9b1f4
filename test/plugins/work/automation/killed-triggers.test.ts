// proof, timeout: 1800s: so that KILLS=200 fits (npm run prove:triggers)
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Events, type StoredEvent } from '../../../../plugins/platform/events/api.js'
import { SessionCreated } from '../../../../plugins/work/sessions/api.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { typescript } from '../../../harness/run-typescript.js'
import { until } from '../../../harness/until.js'
import { ask } from '../../../kernel/http/doors.js'
import { bench } from './bench.js'
import { completed } from './fake-sessions.js'

const KILLS = Number(process.env.KILLS ?? 10)
const program = fileURLToPath(new URL('killed-triggers-daemon.ts', import.meta.url))
const START_SECONDS = Date.UTC(2030, 0, 1) / 1000

function signed(body: string, delivery: number) {
  const signature = createHmac('sha256', 'a secret of this test').update(`${START_SECONDS}.${body}`).digest('hex')
  return {
    'content-type': 'application/json',
    'x-service-webhook-timestamp': String(START_SECONDS),
    'x-service-webhook-signature': `sha256=${signature}`,
    'x-service-webhook-delivery-id': String(delivery),
  }
}

/** What events tell of a run. */
interface Told {
  readonly job_id?: string
  readonly trigger_id?: string
  readonly session_id?: string
  readonly status: string
  readonly error?: string
}

/** Reads the log of events of the daemon that it runs in. */
function observer() {
  const kernels: PluginKernel<{ events: typeof Events }>[] = []
  const plugin = definePlugin({
    name: 'observer',
    version: '1.0.0',
    requires: { events: Events },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ events: typeof Events }>) {
          kernels.push(kernel)
        }
      },
  }).surface({})
  const all = async (name: string): Promise<StoredEvent[]> => {
    const events: StoredEvent[] = []
    for (let after = 0; ; after = events.at(-1)?.seq ?? 0) {
      const page = (await kernels[0]?.needs.events.list({ name, after, limit: 1000 })) ?? []
      events.push(...page)
      if (page.length < 1000) return events
    }
  }
  return { plugin, all }
}

test('kill -9 under load: every accepted delivery and emitted event has one run, and no run has two sessions', async () => {
  const home = await temporaryFolder('killed-triggers')
  const ledger = path.join(await temporaryFolder('killed-ledger'), 'ledger')
  await writeFile(ledger, '')
  const ready = async () => (await readFile(ledger, 'utf8')).split('\n').filter(line => line.startsWith('ready '))
  const taken = new Set<string>()
  let delivery = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    const child = spawn(process.execPath, [...typescript, program, home, ledger], { stdio: 'inherit' })
    const exited = once(child, 'exit')
    while ((await ready()).length < kill) {
      assert.is(child.exitCode, null, 'the daemon ended by itself')
      await sleep(20)
    }
    const [, port, endpoint = ''] = (await ready()).at(-1)?.split(' ') ?? []
    const where = { host: '127.0.0.1', port: Number(port) }
    const goal = taken.size + 5
    let alive = true
    const sending = (async () => {
      while (alive) {
        const body = JSON.stringify({ n: ++delivery })
        // Twice: what was refused as taken before counts as taken.
        for (const _ of [1, 2]) {
          const reply = await ask(where, endpoint, { method: 'POST', body, headers: signed(body, delivery) }).catch(
            () => undefined,
          )
          if (reply?.status === 200 || reply?.body?.code === 'webhook_replayed') taken.add(String(delivery))
        }
        await sleep(20)
      }
    })()
    await until(() => taken.size >= goal, 'five more deliveries')
    await sleep(Math.random() * 60)
    child.kill('SIGKILL')
    await exited
    alive = false
    await sending
  }
  const log = observer()
  const limits = { max_concurrent_jobs: 1000, default_fire_limit: { max: 100_000, window: '1h' } }
  const b = await bench({ home, config: { automation: limits }, answer: () => completed, plugins: [log.plugin] })
  const { triggers } = (await b.request('GET', '/api/automation/triggers')).body
  const [hook, onEnd] = ['hook', 'on end'].map(name => triggers.find((one: Reply) => one.name === name))
  // By the log: lists of runs have at most 1000.
  const read = async () => {
    const [created, ended] = await Promise.all(['created', 'ended'].map(name => log.all(`automation.run.${name}`)))
    return { created: (created ?? []) as StoredEvent<Told>[], ended: (ended ?? []) as StoredEvent<Told>[] }
  }
  const completedOf = (ended: readonly StoredEvent<Told>[]) =>
    ended.filter(({ payload }) => payload.job_id === 'demo' && payload.status === 'completed').map(({ id }) => id)
  const of = (events: readonly StoredEvent<Told>[], trigger: string) =>
    events.filter(({ payload }) => payload.trigger_id === trigger)
  const { created, ended } = await b.until(async () => {
    const seen = await read()
    const isWhole = of(seen.created, onEnd.id).length >= completedOf(seen.ended).length
    return isWhole && seen.created.length === seen.ended.length && seen
  }, 'each end of a run of the job has a run of the trigger, and all are over')
  const ids = created.map(({ subject }) => subject)
  assert.is(new Set(ids).size, ids.length, 'a run is there twice')
  assert.equal(ended.map(({ subject }) => subject).sort(), ids.toSorted())
  // Each end led to one run of the trigger, and nothing else did.
  assert.equal(
    of(created, onEnd.id)
      .map(({ cause }) => cause)
      .sort(),
    completedOf(ended).sort(),
  )
  // A delivery whose reply the kill swallowed may have been taken as well.
  const own = of(created, hook.id).length
  assert.ok(own >= taken.size && own <= delivery, `${own} runs of ${taken.size} to ${delivery}`)
  const sessions = await log.all(SessionCreated.name)
  const causes = sessions.map(({ cause }) => cause)
  assert.is(new Set(causes).size, causes.length, 'a run has two sessions')
  // Without a session of its own a run was begun anew: nothing that was taken ends for the restart alone.
  for (const { payload } of ended.filter(one => one.payload.trigger_id && !one.payload.session_id))
    assert.match(payload.error ?? '', /^daemon_restarted: /, JSON.stringify(payload))
  console.log(`${KILLS} kills, ${own} deliveries, ${completedOf(ended).length} ends, ${sessions.length} sessions`)
  await b.end()
})

test.run()
