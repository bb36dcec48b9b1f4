// Offers of tasks among the daemons of the proof: one offers, agents of the others work, and all that was done is counted at the end.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Chance } from '../library/chance.js'
import type { Speaker } from './speaker.js'

const AGENT = fileURLToPath(new URL('../../fixtures/task-agent.mjs', import.meta.url))
const HAND = 'hand'
/** How long a worker may be silent in the proof; one that is cut off for longer loses its attempt. */
export const LEASE = '3s'
const CUT_MS = 4500
/** Often enough for every fault: attempts are not what is tried here. */
const MOST_ATTEMPTS = 10
/** What the agent does for a task: long enough that faults hit it at work. */
const STEPS = 'sleep 700;complete'

/** An offer as a daemon lists it. */
interface Listed {
  readonly offer_id: string
  readonly direction: 'given' | 'taken'
  readonly state: string
  readonly attempt: number
  readonly peer?: string | null
  readonly task_id?: string | null
  readonly run_id?: string | null
  readonly error?: string | null
}

/** What an agent noted of one of its steps. */
interface Noted {
  readonly session: string
  readonly run?: string
  readonly step: string
  readonly code: number
}

export interface OffersTold {
  readonly note: (text: string) => void
  readonly fault: (text: string) => void
  readonly until: (what: string, holds: () => Promise<boolean>) => Promise<void>
}

const ledgerOf = (one: Speaker) => path.join(one.home, '..', 'ledger')
const notesOf = (one: Speaker): Noted[] =>
  existsSync(ledgerOf(one))
    ? readFileSync(ledgerOf(one), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
    : []
const offersOf = async (one: Speaker): Promise<Listed[]> =>
  (await one.patiently(() => one.ask('GET', '/api/network/remote/offers'))).offers

/** An agent that works on runs, and offers of others for it. */
async function hire(one: Speaker): Promise<void> {
  const folder = path.join(one.home, 'agents', HAND)
  mkdirSync(folder, { recursive: true })
  const command = `${process.execPath} ${AGENT} --ledger=${ledgerOf(one)}`
  const head = `name: ${HAND}\npermissions: approve-all\ncommand: '${command}'`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  await one.svc(...one.in('network', 'accept-offers', '--agent', HAND, '--at-once', '2'))
}

/** Offers tasks to the others while daemons are killed and one is cut off, and tells what does not hold. */
export async function proveOffers(
  origin: Speaker,
  workers: readonly Speaker[],
  { tasks, kills, cuts }: { readonly tasks: number; readonly kills: number; readonly cuts: number },
  random: Chance,
  { note, fault, until }: OffersTold,
): Promise<void> {
  for (const one of workers) await hire(one)
  const wanted: string[] = []
  for (let n = 0; n < tasks; n++) {
    const scope = { scope: 'workspace', workspace: origin.workspace, max_attempts: MOST_ATTEMPTS }
    const { task } = await origin.ask('POST', '/api/tasks', { title: STEPS, description: `part ${n}`, ...scope })
    await origin.ask('POST', '/api/network/remote/offers', { task: task.id })
    wanted.push(task.id)
  }
  note(`${origin.name} offers ${tasks} tasks to ${workers.map(one => one.name).join(' and ')}`)
  const given = async () => (await offersOf(origin)).filter(one => one.direction === 'given')
  const ended = async () => (await given()).filter(one => one.state !== 'offered' && one.state !== 'taken').length

  // Each fault at its share of the work, and at a random moment of it; workers and the origin are killed in turn.
  const events = [
    ...Array.from({ length: cuts }, (_, i) => ({ what: 'cut' as const, whom: 'worker', i: i + 0.5 })),
    ...Array.from({ length: kills }, (_, i) => ({ what: 'kill' as const, whom: i % 2 === 0 ? 'worker' : 'origin', i })),
  ].sort((a, b) => a.i - b.i)
  const restored: Promise<void>[] = []
  const restarts = new Map<Speaker, number>()
  for (const [place, { what, whom, i }] of events.entries()) {
    const due = Math.floor((tasks * place) / (events.length + 1))
    await until(`${due} offers have ended`, async () => (await ended()) >= due)
    const daemon = whom === 'origin' ? origin : (workers[Math.floor(i + 0.5) % workers.length] as Speaker)
    const isTaken = () => offersOf(daemon).then(all => all.some(one => one.state === 'taken'))
    const isOver = async () => (await ended()) >= tasks
    await until(`${daemon.name} has an offer that is worked on`, async () => (await isTaken()) || (await isOver()))
    await sleep(random.int(600))
    note(`${what} ${daemon.name} at ${await ended()} of ${tasks} offers`)
    if (what === 'kill') {
      restarts.set(daemon, (restarts.get(daemon) ?? 0) + 1)
      await daemon.kill()
    } else {
      // Others are killed meanwhile.
      await daemon.way.cut(true)
      restored.push(sleep(CUT_MS).then(() => daemon.way.cut(false)))
    }
  }
  await Promise.all(restored)
  await until('all offers have ended', async () => (await ended()) >= tasks)
  const mine = await given()
  /** A worker that lost its attempt hears of it when it next sends a receipt. */
  const isTold = ({ state, offer_id: id, attempt, error }: Listed) =>
    state !== 'taken' && (error != null || mine.some(one => one.offer_id === id && one.attempt === attempt))
  const takenBy = async (one: Speaker) => (await offersOf(one)).filter(row => row.direction === 'taken')
  await until('the workers know that their attempts are over', async () =>
    (await Promise.all(workers.map(takenBy))).flat().every(isTold),
  )

  const theirs = new Map<string, { readonly worker: Speaker; readonly row: Listed }[]>()
  for (const worker of workers)
    for (const row of await offersOf(worker))
      if (row.direction === 'taken') theirs.set(row.offer_id, [...(theirs.get(row.offer_id) ?? []), { worker, row }])
  let attempts = 0
  let executions = 0
  let fenced = 0
  for (const task of wanted) {
    const rows = mine.filter(one => one.task_id === task)
    const [row] = rows
    const says = (text: string) => fault(`offer ${row?.offer_id} of ${task}: ${text}`)
    if (!row || rows.length !== 1 || row.state !== 'completed') {
      says(`it is ${JSON.stringify(rows)}`)
      continue
    }
    const { run } = (await origin.ask('GET', `/api/task-runs/${row.run_id}`)).run
    const { timeline } = await origin.ask('GET', `/api/tasks/${task}/timeline?limit=500`)
    const ends = timeline.filter((one: { event_type: string }) => one.event_type === 'task.run_completed').length
    if (ends !== 1) says(`its result was taken ${ends} times`)
    const tried = theirs.get(row.offer_id) ?? []
    attempts += tried.length
    for (const attempt of new Set(tried.map(one => one.row.attempt)))
      if (tried.filter(one => one.row.attempt === attempt).length > 1)
        says(`attempt ${attempt} was given to more than one daemon`)
    for (const { worker, row: their } of tried) {
      const isWinner = their.attempt === row.attempt
      const notes = notesOf(worker).filter(one => one.run === their.run_id)
      const claims = notes.filter(one => one.step === 'next' && one.code === 0)
      executions += claims.length
      const local = their.run_id ? (await worker.ask('GET', `/api/task-runs/${their.run_id}`)).run.run : undefined
      // A run is begun again only where its daemon was killed, and each time that is recorded with the run.
      const most = 1 + (local?.recovery_count ?? 0) + (restarts.get(worker) ?? 0)
      if (claims.length > most)
        says(`${worker.name} began attempt ${their.attempt} ${claims.length} times, and ${most} can be explained`)
      if (!isWinner) {
        fenced += 1
        if (!their.error) says(`${worker.name} was not told that attempt ${their.attempt} is over`)
        continue
      }
      if (their.state !== 'completed' || worker.name !== row.peer)
        says(`${worker.name} has the last attempt as ${their.state}, and ${row.peer} completed it`)
      if (JSON.stringify(run.result) !== JSON.stringify(local?.result) || run.result?.by !== local?.session_id)
        says(`its result is ${JSON.stringify(run.result)}, and that of ${worker.name} ${JSON.stringify(local?.result)}`)
      if (!claims.some(one => one.session === run.result?.by)) says('no agent claimed what it is the result of')
    }
    if (!tried.some(one => one.row.attempt === row.attempt)) says('no worker knows of its last attempt')
  }
  note(`${wanted.length} offers: ${attempts} attempts, ${executions} executions, ${fenced} attempts fenced`)
}
