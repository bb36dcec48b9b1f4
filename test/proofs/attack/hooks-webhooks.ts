import { Installed } from '../../e2e/installed.js'
import { type Chance, chance } from '../library/chance.js'
import type { Attack, AttackRun } from './attack.js'
import { deliveries, miscounted } from './hooks-webhooks/deliveries.js'
import { misbehaviour } from './hooks-webhooks/misbehaviour.js'
import type { Scene, Strike } from './hooks-webhooks/scene.js'
import { furnish } from './world.js'

const STRIKES: Readonly<Record<string, Strike>> = { ...deliveries, ...misbehaviour }

export const attack: Attack = {
  name: 'hooks-webhooks',
  holds: 'no delivery, hook or trigger gets more than its due, and the daemon goes on',
  size: { ci: 30, full: 1500, unit: 'strikes' },
  run,
}

async function run({ seed, cases, say }: AttackRun): Promise<readonly string[]> {
  const at = new Installed({ http: { port: 0 }, automation: { max_concurrent_jobs: 1000 } })
  const wrong: string[] = []
  const counts = new Map<string, number>()
  try {
    const random = chance('hooks-webhooks', seed)
    const scene = await open(at, random)
    const names = Object.keys(STRIKES)
    // Each once, then whatever comes.
    const order = [...names.toSorted(() => random() - 0.5), ...Array.from({ length: cases }, () => random.of(names))]
    for (const name of order.slice(0, cases)) {
      counts.set(name, (counts.get(name) ?? 0) + 1)
      const fault = await (STRIKES[name] as Strike)(scene).catch(error => `${error}`)
      if (fault !== undefined) wrong.push(`${name}: ${fault}`)
      const { pid } = (await scene.ask('GET', '/api/status/identity')).body.daemon
      if (pid !== scene.pid) return [...wrong, `${name}: the daemon ${scene.pid} is gone${at.logTail()}`]
    }
    wrong.push(...(await miscounted(scene)))
    say([...counts].map(([name, count]) => `${name}: ${count}`).join(', '))
    return wrong
  } finally {
    await at.remove()
  }
}

async function open(at: Installed, random: Chance): Promise<Scene> {
  const world = await furnish(at)
  const ask: Scene['ask'] = async (method, url, body) => {
    const { status, text } = await at.request('socket', method, url, body)
    return { status, body: text === '' ? undefined : JSON.parse(text) }
  }
  return { ...world, at, random, webhook: undefined, sent: 0, taken: new Map(), ask }
}
