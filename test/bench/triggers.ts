import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'
import type { Fired, TriggersProcess } from './triggers-process.js'
import type { WebhookBare } from './webhook-bare.js'
import type { Deliveries, WebhookLoad } from './webhook-load.js'

const SECRET = 'a secret of the bench'
const RATE = 500
const CLIENTS = 32
/** Webhooks whose delivery is repeated. */
const REPEATED = 200
const CONFIG = {
  automation: { max_concurrent_jobs: 1000, default_fire_limit: { max: 1_000_000, window: '1h' } },
  http: { port: 0 },
}

/** From an event to the run of its trigger, and from a signed delivery to its. */
export async function benchTriggers(context: Context): Promise<void> {
  const { temp, program, quick, report } = context
  const home = path.join(temp, 'triggers')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(path.join(home, 'config.json'), JSON.stringify(CONFIG))
  const daemon = Child.start<TriggersProcess>(program('triggers-process'), [home])
  // Each takes 60 at once: there are enough of them for all rounds.
  const { port, paths } = await daemon.call('boot', 1000)
  const title = `Triggers and webhooks${quick ? ', coarse' : ''}`
  report.section(title, [...(await events(daemon, quick)), ...(await webhooks(context, daemon, port, paths))])
  await daemon.kill()
}

async function events(daemon: Child<TriggersProcess>, quick: boolean): Promise<Row[]> {
  const [rounds, seconds] = quick ? [3, 1] : [7, 2]
  await daemon.call('fire', RATE, RATE)
  const fired: Fired[] = []
  while (fired.length < rounds) fired.push(await daemon.call('fire', RATE * seconds, RATE))
  const at = (pick: (one: Fired) => readonly number[], part: number) => (one: Fired) =>
    pick(one).toSorted((a, b) => a - b)[Math.floor(pick(one).length * part)] ?? Number.NaN
  const row = (name: string, part: number, target?: Row['target']): Row => {
    const ours = fired.map(at(one => one.claimed, part))
    const base = fired.map(at(one => one.written, part))
    return {
      what: `event committed until its run is durable, ${RATE}/s, ${name}`,
      ours: ms(median(ours)),
      baseline: `commit of the event: ${ms(median(base))}`,
      ratio: ratioOf(ours, base),
      ...(target && { value: median(ours), target }),
    }
  }
  const gap = { what: '… longest gap of the loop', ours: ms(median(fired.map(one => one.gap))) }
  return [row('p50', 0.5), row('p99', 0.99, { atMost: 20, unit: 'ms' }), gap]
}

/** What one server did: requests a second, and milliseconds of its processor for each. */
interface Done {
  readonly rate: number
  readonly cpu: number
}

async function webhooks(
  { program, quick }: Context,
  daemon: Child<TriggersProcess>,
  port: number,
  paths: readonly string[],
): Promise<Row[]> {
  const bare = Child.start<WebhookBare>(program('webhook-bare'), [SECRET])
  const load = Child.start<WebhookLoad>(program('webhook-load'))
  const [rounds, seconds] = quick ? [2, 0.6] : [5, 1]
  const ours = { port, paths }
  const base = { port: await bare.call('port'), paths: ['/hook'] }
  const inserting = { port: await daemon.call('inserting'), paths: ['/hook'] }
  const busy = (server: Child<TriggersProcess> | Child<WebhookBare>, more: Partial<Deliveries>) => async () => {
    const cpu = () => (server as Child<WebhookBare>).call('cpu')
    const before = await cpu()
    const all = { secret: SECRET, clients: CLIENTS, seconds, statuses: [200], ...base, ...more }
    const { rate, count } = await load.call('run', all)
    return { rate, cpu: ((await cpu()) - before) / count }
  }
  const forged = { secret: 'another one', statuses: [401] }
  // Few enough that each was taken before the first round, and so many that none gets more than it takes.
  const at = Math.floor(Date.now() / 1000)
  const repeated = { ...ours, paths: paths.slice(0, REPEATED), repeatedAt: at, statuses: [200, 409] }
  await load.call('run', { secret: SECRET, clients: CLIENTS, seconds, ...repeated, once: true })
  const measured = await inTurn(rounds + 1, [
    busy(daemon, ours),
    busy(bare, base),
    busy(daemon, inserting),
    busy(daemon, { ...ours, ...forged }),
    busy(bare, { ...base, ...forged }),
    busy(daemon, repeated),
  ])
  await Promise.all([bare.kill(), load.kill()])
  const [taken = [], checked = [], inserted = [], refused = [], refusedBare = [], again = []] = measured.map(all =>
    all.slice(1),
  )
  const name = 'bare fastify that checks the HMAC'
  return [
    ...compared(`signed deliveries, each a durable run, ${CLIENTS} clients`, taken, name, checked, 0.5),
    ...compared('… beside as durable a write', taken, `${name} and writes one row into the same store`, inserted),
    ...compared('deliveries with a wrong signature', refused, name, refusedBare),
    ...compared('deliveries that were taken before', again, `${name} and writes nothing`, checked),
  ]
}

function compared(what: string, ours: readonly Done[], baseline: string, base: readonly Done[], least?: number): Row[] {
  const rates = [ours, base].map(all => all.map(({ rate }) => rate)) as [number[], number[]]
  const cpus = [ours, base].map(all => all.map(({ cpu }) => cpu)) as [number[], number[]]
  const ratio = ratioOf(...rates)
  return [
    {
      what,
      ours: perSecond(median(rates[0])),
      baseline: `${baseline}: ${perSecond(median(rates[1]))}`,
      ratio,
      ...(least === undefined ? {} : { value: ratio, target: { atLeast: least } }),
    },
    {
      what: '… processor time of the server for each',
      ours: ms(median(cpus[0])),
      baseline: ms(median(cpus[1])),
      ratio: ratioOf(...cpus),
    },
  ]
}
