import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { systemClock } from '../../../../kernel/clock.js'
import type { Clock } from '../../../../kernel/contract/basics.js'

import { inspectProcess } from '../../../../plugins/platform/processes/inspect.js'
import { createSpawner, type OwnedRequest, type Spawner } from '../../../../plugins/platform/processes/spawner.js'
import type { ProcessRow, ProcessTable } from '../../../../plugins/platform/processes/tables.js'

export const scratch = mkdtempSync(join(tmpdir(), 'svc-spawn-'))
/** With the test runner's mark, by which it finds what a failing test leaves. */
export const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', SVC_TEST_MARK: process.env.SVC_TEST_MARK ?? 'none' }
export const quick = { graceMs: 50, termMs: 50 }
export const homeId = `test-${process.pid}`
/** Three processes that heed neither the end of stdin nor SIGTERM; says the pids of two. */
export const deaf = `trap '' TERM; sleep 1000 & echo $!; sleep 1000 & echo $!; while :; do wait; done`
const made: Spawner[] = []
const strays = new Set<number>()
let homes = 0

export function memoryTable(rows: ProcessRow[] = []): ProcessTable {
  return {
    async add(row) {
      rows.push(row)
    },
    async remove(pid, startTime) {
      rows = rows.filter(row => row.pid !== pid || row.startTime !== startTime)
    },
    list: () => [...rows],
  }
}

export function spawner(
  table: ProcessTable = memoryTable(),
  durable = async () => {},
  id = `${homeId}-${++homes}`,
  clock: Clock = systemClock(),
): Spawner {
  // Files that share a process share this module, and each cleans up behind itself.
  mkdirSync(scratch, { recursive: true })
  const created = createSpawner({ homeId: id, table, clock, durable })
  made.push(created)
  return created
}

export function request(...argv: string[]): OwnedRequest {
  // Another file of this process may have cleaned it up.
  mkdirSync(scratch, { recursive: true })
  return { owner: 'tests', label: argv[0] ?? '', argv, cwd: scratch, env, stdio: 'pipe' }
}

export function shell(script: string): OwnedRequest {
  return request('/bin/sh', '-c', script)
}

export function isRunning(pid: number): boolean {
  const found = inspectProcess(pid, process.platform)
  return found !== undefined && !found.ended
}

/** To be ended with the test, should it still run. */
export function remember<P extends number>(pid: P): P {
  strays.add(pid)
  return pid
}

/** The next lines, which are the pids of processes that a script started: `count` of them, or up to the line `up`. */
export async function pidsFrom(stream: Readable, count = Number.POSITIVE_INFINITY): Promise<number[]> {
  const pids: number[] = []
  for await (const line of createInterface(stream)) {
    if (line === 'up') break
    if (pids.push(remember(Number(line))) === count) break
  }
  return pids
}

/** Ends whatever the tests of this file started. */
export async function cleanUp(): Promise<void> {
  await Promise.all(made.map(one => one.stopAll(quick)))
  for (const pid of strays) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  rmSync(scratch, { recursive: true, force: true })
}
