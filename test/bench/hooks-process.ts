// Dispatches to hooks by each executor, and starts the same program bare.
import { spawn } from 'node:child_process'
import { systemClock } from '../../kernel/clock.js'
import { createSpawner } from '../../plugins/platform/processes/spawner.js'
import type { ProcessRow } from '../../plugins/platform/processes/tables.js'
import type { HookPayload } from '../../plugins/work/hooks/api.js'
import { type DeclaredHook, type Executor, matcherTest } from '../../plugins/work/hooks/declared.js'
import { Dispatcher } from '../../plugins/work/hooks/dispatch/dispatcher.js'
import type { Program } from '../../plugins/work/hooks/executors/launch.js'
import { runSpawned } from '../../plugins/work/hooks/executors/spawned.js'
import { WarmProgram } from '../../plugins/work/hooks/executors/warm.js'
import type { K } from '../../plugins/work/hooks/needs.js'
import { answer } from './child.js'

export type Way = 'none' | 'native' | 'warm' | 'spawned' | 'bare'

const ANSWER = `import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"]}), flush=True)
`
const rows = new Map<number, ProcessRow>()
const table = {
  add: async (row: ProcessRow) => void rows.set(row.pid, row),
  remove: async (pid: number) => void rows.delete(pid),
  list: () => [...rows.values()],
}
const clock = systemClock()
const spawner = createSpawner({ homeId: `bench-${process.pid}`, table, clock, durable: async () => {} })
const kernel = {
  clock,
  env: { PATH: process.env.PATH },
  home: { root: '/' },
  ids: { random: () => 0 },
  log: { warn() {} },
  redact: { text: (text: string) => text },
  needs: {
    extensions: { current: undefined },
    processes: { spawn: (request: object) => spawner.spawn({ owner: 'bench', ...request } as never) },
    workspaces: { get: () => undefined },
  },
} as unknown as K

const payload: HookPayload = { tool_name: 'execute', title: 'ls', command: 'ls', decision: 'allow' }
const program = (warm: boolean): Program => ({
  kind: 'subprocess',
  warm,
  command: warm ? 'python3' : 'cat',
  args: warm ? ['-c', ANSWER] : ['/dev/null'],
  env: {},
  secretEnv: {},
  base: '',
})
const EXECUTORS: Readonly<Record<Exclude<Way, 'none' | 'bare'>, Executor>> = {
  native: { kind: 'native', run: () => undefined },
  warm: program(true),
  spawned: program(false),
}

function dispatcherFor(way: Exclude<Way, 'bare'>): Dispatcher {
  const hook: DeclaredHook = {
    ...{ name: 'bench', event: 'permission.request', source: 'config', owner: '', mode: 'sync' },
    ...{ priority: 0, required: false, enabled: true, matcher: {}, timeoutMs: 60_000, metadata: {} },
    matches: matcherTest({}),
    executor: way === 'none' ? EXECUTORS.native : EXECUTORS[way],
  }
  const warm = new WarmProgram(kernel, hook, EXECUTORS.warm as Program)
  return new Dispatcher({
    clock,
    hooksOf: () => (way === 'none' ? [] : [hook]),
    // As the service does it: only a program is a promise.
    execute: (_, told, cutoff) => {
      if (way === 'warm') return warm.ask(told, cutoff)
      return way === 'spawned' ? runSpawned(kernel, hook, EXECUTORS.spawned as Program, told, cutoff) : undefined
    },
    record: ({ outcome, error }) => {
      // A dispatch never rejects: without this check, one that fails at once counts as a fast one.
      if (outcome !== 'applied') throw new Error(`a dispatch (${way}) is ${outcome}: ${error}`)
      runs++
    },
    warn() {},
  })
}

/** What anybody would do without a daemon. */
const bare = () =>
  new Promise<void>((resolve, reject) => {
    const child = spawn('cat', ['/dev/null'], { cwd: '/', stdio: 'pipe' })
    child.stdin.on('error', () => {})
    child.stdin.end(JSON.stringify(payload))
    child.stdout.resume()
    child.once('error', reject)
    child.once('close', () => resolve())
  })

const dispatchers = new Map<Way, Dispatcher>()

/** Hooks that have run. */
let runs = 0

const handlers = {
  /** Microseconds of each of so many, one after the other; throws when not every one was answered by its hook. */
  async run(way: Way, count: number): Promise<number[]> {
    const dispatcher = way === 'bare' ? undefined : (dispatchers.get(way) ?? dispatcherFor(way))
    if (dispatcher) dispatchers.set(way, dispatcher)
    const took: number[] = []
    const before = runs
    while (took.length < count) {
      const began = performance.now()
      if (dispatcher) await dispatcher.dispatch('permission.request', {}, payload)
      else await bare()
      took.push((performance.now() - began) * 1000)
    }
    const expected = way === 'none' || way === 'bare' ? 0 : count
    if (runs - before !== expected)
      throw new Error(`${runs - before} of ${expected} dispatches (${way}) ran their hook`)
    return took
  },
}
export type HooksProcess = typeof handlers

answer(handlers)
