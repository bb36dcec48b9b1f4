// Starts and ends many processes: by the spawner of the daemon, and by Node alone, one in each turn of the event loop.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '../../kernel/clock.js'
import { createSpawner } from '../../plugins/platform/processes/spawner.js'
import type { ProcessRow } from '../../plugins/platform/processes/tables.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'
import { pause } from './measure.js'

/** What starting and ending took, in milliseconds. */
export interface Processes {
  readonly startMs: number
  readonly startGap: number
  readonly endMs: number
  readonly endGap: number
}

let homes = 0
const longest = watchLoop()

async function measured(start: () => Promise<void>, end: () => Promise<void>): Promise<Processes> {
  const timed = async (work: () => Promise<void>) => {
    // The histogram of the loop has its first value a turn later.
    await pause(20)
    longest()
    const began = performance.now()
    await work()
    const elapsed = performance.now() - began
    await pause(20)
    return [elapsed, longest()] as const
  }
  const [startMs, startGap] = await timed(start)
  const [endMs, endGap] = await timed(end)
  return { startMs, startGap, endMs, endGap }
}

const handlers = {
  ours(count: number): Promise<Processes> {
    const rows = new Map<number, ProcessRow>()
    const table = {
      add: async (row: ProcessRow) => void rows.set(row.pid, row),
      remove: async (pid: number) => void rows.delete(pid),
      list: () => [...rows.values()],
    }
    const homeId = `bench-${process.pid}-${++homes}`
    const spawner = createSpawner({ homeId, table, clock: systemClock(), durable: async () => {} })
    const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' }
    const one = { owner: 'bench', label: 'cat', argv: ['cat'], cwd: '/', env, stdio: 'pipe' } as const
    return measured(
      async () => void (await Promise.all(Array.from({ length: count }, () => spawner.spawn(one)))),
      () => spawner.stopAll(),
    )
  },
  bare(count: number): Promise<Processes> {
    const children: ChildProcess[] = []
    return measured(
      async () => {
        while (children.length < count) {
          children.push(spawn('cat', [], { cwd: '/', detached: true, stdio: 'pipe' }))
          await new Promise(setImmediate)
        }
      },
      async () => {
        const ends = children.map(child => once(child, 'exit'))
        for (const child of children) child.stdin?.end()
        await Promise.all(ends)
      },
    )
  },
}
export type ProcessesProcess = typeof handlers
answer(handlers)
