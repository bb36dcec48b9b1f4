import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Io } from '../../../../cli/io.js'
import { Output } from '../../../../cli/show/output.js'
import { watchReplies } from '../../../../cli/watch-route.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { type Frame, runTop } from '../../../../plugins/reach/observe/cli/top.js'

const start = Date.parse('2026-01-01T00:00:00Z')

/** What a daemon says of its tasks in the look of that number, from 0: a second later each time. */
function dashboardOf(look: number, queued: number) {
  const age = look * 1000
  return {
    freshness: { observed_at: new Date(start + age).toISOString() },
    queue: { total: queued, oldest_queue_age_ms: queued === 0 ? 0 : age },
    active_runs: {
      items: [{ run_id: 'run_1', run_status: 'running', task_title: 'Deploy', agent_name: 'coder', age_ms: age + 500 }],
    },
  }
}

/** Runs `svc top --json --interval 1` against a daemon whose queue has these lengths, and interrupts it after the last. */
async function statesOf(queues: readonly number[]): Promise<{ frames: Frame[]; looks: number }> {
  const interrupt = new AbortController()
  const { signal } = interrupt
  let looks = 0
  const lines: string[] = []
  const sink = { write: (text: string) => void lines.push(text) }
  const io = { stdout: sink, stderr: sink, env: {}, signal } as unknown as Io
  const out = new Output(io, 'json')
  await runTop({
    ...{ path: 'top', args: {}, options: { interval: 1 }, cwd: '/', home: '/', signal, out },
    client: {
      request: async (_: string, url: string) => {
        if (!url.startsWith('/api/observe/tasks/dashboard'))
          throw Object.assign(new Error('there is no such route'), { code: 'route_not_found' })
        const look = looks++
        if (looks >= queues.length) interrupt.abort()
        return { dashboard: dashboardOf(look, queues[look] ?? 0) }
      },
    },
    watch: (ask: () => Promise<unknown>, show: (reply: unknown, to: Output) => void) =>
      watchReplies(ask, show, { io, out }),
  } as unknown as CommandContext)
  return { frames: lines.map(line => JSON.parse(line)), looks }
}

test('each state is printed once, and a state that differs only in time is not', async () => {
  // Of two tasks that wait the age grows with each look, and so does the age of the run.
  const { frames, looks } = await statesOf([2, 2, 0])
  assert.is(looks, 3)
  assert.equal(
    frames.map(({ at, queue }) => [at, queue?.queued]),
    [
      ['2026-01-01T00:00:00.000Z', 2],
      ['2026-01-01T00:00:02.000Z', 0],
    ],
  )
  assert.equal(
    frames.map(({ runs }) => runs[0]?.since),
    Array(2).fill('2025-12-31T23:59:59.500Z'),
  )
})

test.run()
