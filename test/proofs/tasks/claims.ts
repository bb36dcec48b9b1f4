import { type Agent, scene } from '../../plugins/work/tasks/scene.js'
import type { Chance } from '../library/chance.js'
import { type Answer, many } from './claimants.js'

/** Runs that the claimants pass around: what a task keeps of its past has a bound, a million tasks have none. */
const POOL = 500
/** One claim in so many completes its run; another one is queued for it. The others give it back. */
const COMPLETED = 20
const NOTED = 10_000

/** Sessions of a daemon that claim. */
export interface Claiming {
  readonly sessions: readonly string[]
  /** `claim-next`, or `<run>/complete`. */
  ask(session: string, what: string): Promise<Answer>
  /** Queues a run of a task of its own; its id. */
  queue(title: string): Promise<string>
}

export interface Proof {
  readonly wrong: string[]
  readonly random: Chance
  note(text: string): void
}

/** Lets all sessions claim at once, as often as is asked for, and then complete what waits: nothing may be held by two. */
export async function passAround({ sessions, ask, queue }: Claiming, claims: number, proof: Proof): Promise<void> {
  const { wrong, random, note } = proof
  const held = new Map<string, string>()
  const over = new Set<string>()
  let claimed = 0
  await many(POOL, 8, n => queue(`claim ${n}`))
  await Promise.all(sessions.map(claim))
  note(`${claimed} claims by ${sessions.length}, ${over.size} runs completed`)
  await Promise.all(sessions.map(drain))

  async function claim(session: string): Promise<void> {
    while (claimed < claims) {
      const { status, body } = await ask(session, 'claim-next')
      if (status !== 200) return void wrong.push(`claim-next: ${status} ${JSON.stringify(body)}`)
      const { id } = body.claim.run
      if (++claimed % NOTED === 0) note(`${claimed} claims`)
      if (held.has(id)) wrong.push(`run ${id} was given to ${session}, and ${held.get(id)} holds it`)
      if (over.has(id)) wrong.push(`run ${id} was given to ${session} after it was completed`)
      held.set(id, session)
      // So that others ask while it is held.
      if (random.int(4) === 0) await ask(session, `${id}/heartbeat`)
      const completes = random.int(COMPLETED) === 0
      if (completes) over.add(id)
      held.delete(id)
      const ended = await ask(session, `${id}/${completes ? 'complete' : 'release'}`)
      if (ended.status !== 200) wrong.push(`the end of ${id}: ${ended.status} ${JSON.stringify(ended.body)}`)
      if (completes) await queue(`claim ${id}`)
    }
  }

  async function drain(session: string): Promise<void> {
    for (;;) {
      const { status, body } = await ask(session, 'claim-next')
      if (status !== 200) return
      const { id } = body.claim.run
      const ended = await ask(session, `${id}/complete`)
      if (over.has(id) || ended.status !== 200) wrong.push(`run ${id} was given away twice: ${ended.status}`)
      over.add(id)
    }
  }
}

/** The same with a daemon in this process, without the way over a socket. */
export async function passInside(claims: number, claimants: number, proof: Proof): Promise<void> {
  const world = await scene()
  try {
    const agents = new Map<string, Agent>()
    while (agents.size < claimants) {
      const agent = world.agent()
      agents.set(agent.id, agent)
    }
    const ask = (session: string, what: string) => {
      const agent = agents.get(session) as Agent
      const [run = '', verb] = what.split('/')
      return verb === undefined ? agent.claim() : agent.act(verb, run)
    }
    const queue = async (title: string) => (await world.queued({ title, max_attempts: 10 })).run
    await passAround({ sessions: [...agents.keys()], ask, queue }, claims, proof)
  } finally {
    await world.close()
  }
}
