import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, ms, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'
import type { Fired, TriggersProcess } from './triggers-process.js'
import type { WebhookBare } from './webhook-bare.js'
import type { WebhookLoad } from './webhook-load.js'

const SECRET = 'a secret of the bench'
const RATE = 500
const CLIENTS = 32
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
  const { port, paths } = await daemon.call('boot', quick ? 200 : 1000)
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

async function webhooks(
  { program, quick }: Context,
  daemon: Child<TriggersProcess>,
  port: number,
  paths: readonly string[],
): Promise<Row[]> {
  const bare = Child.start<WebhookBare>(program('webhook-bare'), [SECRET])
  const load = Child.start<WebhookLoad>(program('webhook-load'))
  const [rounds, seconds] = quick ? [2, 0.6] : [5, 1]
  const plain = { secret: SECRET, clients: CLIENTS, seconds, status: 200 }
  const busy =
    (server: Child<TriggersProcess> | Child<WebhookBare>, more: Parameters<WebhookLoad['run']>[0]) => async () => {
      const cpu = () => (server as Child<WebhookBare>).call('cpu')
      const before = await cpu()
      const { rate, count } = await load.call('run', more)
      return { rate, cpu: ((await cpu()) - before) / count }
    }
  const ours = busy(daemon, { ...plain, port, paths })
  const base = busy(bare, { ...plain, port: await bare.call('port'), paths: ['/hook'] })
  const [taken = [], checked = []] = (await inTurn(rounds + 1, [ours, base])).map(all => all.slice(1))
  await Promise.all([bare.kill(), load.kill()])
  const [a, b] = [taken, checked].map(all => all.map(({ rate }) => rate)) as [number[], number[]]
  const [x, y] = [taken, checked].map(all => all.map(({ cpu }) => cpu)) as [number[], number[]]
  const ratio = ratioOf(a, b)
  return [
    {
      what: `signed deliveries, each a durable run, ${CLIENTS} clients`,
      ours: perSecond(median(a)),
      baseline: `bare fastify that checks the HMAC: ${perSecond(median(b))}`,
      ratio,
      value: ratio,
      target: { atLeast: 0.5 },
    },
    {
      what: '… processor time of the server for each',
      ours: ms(median(x)),
      baseline: `bare: ${ms(median(y))}`,
      ratio: ratioOf(x, y),
    },
  ]
}
