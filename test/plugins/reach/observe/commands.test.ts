import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { CliFault } from '../../../../cli/fault.js'
import type { Io } from '../../../../cli/io.js'
import { Output, type OutputMode } from '../../../../cli/show/output.js'
import { textWidth } from '../../../../cli/show/text.js'
import { watchReplies } from '../../../../cli/watch-route.js'
import type { CommandContext, CommandOutput } from '../../../../kernel/plugin.js'
import { summaryOf } from '../../../../plugins/reach/observe/cli/top.js'
import { runOverview, runTop } from '../../../../plugins/reach/observe/commands.js'
import observe from '../../../../plugins/reach/observe/index.js'
import { type Scene, scene } from '../../work/tasks/scene.js'

const test = suite<{ world: Scene }>('overview commands')
test.before.each(async context => {
  context.world = await scene({ plugins: [observe] })
})
test.after.each(({ world }) => world.close())

interface Call {
  readonly mode?: OutputMode
  readonly options?: CommandContext['options']
  readonly isTTY?: boolean
  /** Called after each piece of output; ends the command where it says so. */
  readonly isEnough?: (text: string) => boolean
}

/** Runs a command as the command line would; returns what it printed. */
async function run(
  command: (context: CommandContext) => Promise<unknown>,
  world: Scene,
  { mode = 'human', options = {}, isTTY = false, isEnough = () => false }: Call = {},
): Promise<string> {
  let printed = ''
  const left = new AbortController()
  const write = (text: string) => {
    printed += text
    if (isEnough(printed)) left.abort()
  }
  const stdout = { write, isTTY, columns: 80, rows: 24 }
  const io = {
    env: { TERM: 'xterm', NO_COLOR: '1', COLUMNS: '80' },
    stdout,
    stderr: stdout,
    signal: left.signal,
  } as unknown as Io
  const out = new Output(io, mode)
  await command({
    options,
    cwd: '/',
    out,
    client: {
      request: async (method: string, url: string) => {
        const { status, body } = await world.request(method, url)
        if (status >= 400) throw new CliFault(body.code, body.error, { body })
        return body
      },
    },
    fault: (code: string, text: string) => {
      throw new CliFault(code, text)
    },
    ...(isTTY || mode !== 'human'
      ? {
          watch: (ask: () => Promise<unknown>, show: (reply: unknown, to: CommandOutput) => void) =>
            watchReplies(ask, show, { io, out }),
        }
      : {}),
  } as unknown as CommandContext)
  return printed
}

const LONG = 'a title that is longer than what is left of a line of eighty columns, by far and by far'

test('the summary of top counts one run as one', () => {
  const today = { runs_completed: 1, runs_failed: 0 }
  const [, line] = summaryOf({ attention: 0, today, queue: null } as never, {} as CommandOutput)
  assert.is(line, 'today: 1 run completed, 0 failed')
})

test('top without a terminal prints one state, and no line is wider than 80 columns', async ({ world }) => {
  const agents = Array.from({ length: 12 }, () => world.agent())
  for (const agent of agents) await agent.claim({ run_id: (await world.queued({ title: LONG })).run })
  for (let n = 0; n < 3; n++) await world.queued()
  const text = await run(runTop, world)
  const lines = text.split('\n')
  assert.match(text, /^nothing needs attention; 3 queued, oldest 0 s\ntoday: 0 runs completed, 0 failed\n/)
  assert.match(text, /12 active runs\nID +KIND +STATUS/i)
  assert.match(text, /and 2 more/)
  for (const line of lines) assert.ok(textWidth(line) <= 80, line)
  // What the daemon does not have is left out.
  assert.not.match(text, /bridge/)
})

test('top --json prints one state, with --interval a line per change until interrupted', async ({ world }) => {
  await world.queued()
  const isEnough = (text: string) => {
    const frames = text.split('\n').length - 1
    if (frames === 1) void world.queued()
    return frames > 1
  }
  const lines = (await run(runTop, world, { mode: 'json', options: { interval: 1 }, isEnough })).trimEnd().split('\n')
  const frames = lines.map(line => JSON.parse(line))
  assert.equal(frames[0].queue, { queued: 1, oldest_ms: 0 })
  assert.is(frames[1].queue.queued, 2)
  assert.equal([frames[0].bridges, frames[0].sessions], [null, { total: 0, rows: [] }])
  for (const options of [{}, { once: true }]) {
    const once = await run(runTop, world, { mode: 'json', options })
    assert.is(JSON.parse(once).queue.queued, 2)
  }
  try {
    await run(runTop, world, { options: { interval: 0 } })
    assert.unreachable()
  } catch (error) {
    assert.is((error as Error).message, '--interval is 1 to 3600 seconds')
  }
})

test('top on a terminal replaces the previous state', async ({ world }) => {
  let isAsked = false
  const isEnough = (text: string) => {
    if (!isAsked && text.includes('0 queued')) {
      isAsked = true
      void world.queued()
    }
    return text.includes('1 queued')
  }
  const text = await run(runTop, world, { isTTY: true, isEnough })
  const frames = text.split('\x1b[H').slice(2)
  assert.ok(frames.length >= 2)
  for (const frame of frames) assert.ok(frame.endsWith('\x1b[J'))
})

test('the overview prints every section', async ({ world }) => {
  const ada = world.agent()
  const { run: done } = await world.queued()
  await ada.claim({ run_id: done })
  await ada.act('complete', done)
  const { run: failed, task } = await world.queued({ title: LONG })
  await ada.claim({ run_id: failed })
  await ada.act('fail', failed, { error: 'no \x1b[2Jspace left' })
  const text = await run(runOverview, world)
  assert.match(text, /^Needs attention: 1\n {2}1 failure\n/)
  assert.match(text, new RegExp(task))
  assert.match(text, /1 run completed, 1 failed/)
  assert.match(text, /1 completed, 1 failed, 0 canceled; 50\.0 % succeeded\n {2}2029-12-19 +█ 2030-01-01/)
  assert.match(text, /Tue █\n/)
  assert.match(text, /busiest: Tuesday 00:00/)
  assert.match(text, /Usage in 30 days\n {2}0 tokens, cost not reported/)
  assert.not.ok(text.includes('\x1b'))
  for (const line of text.split('\n')) assert.ok(textWidth(line) <= 80, line)
  const json = JSON.parse(await run(runOverview, world, { mode: 'json', options: { 'usage-window': '7' } }))
  assert.is(json.overview.usage.window_days, 7)
})

test('an unknown workspace ends the command', async ({ world }) => {
  for (const command of [runOverview, runTop])
    try {
      await run(command, world, { options: { in: 'nowhere' } })
      assert.unreachable()
    } catch (error) {
      assert.is((error as CliFault).code, 'workspace_not_found')
    }
})

test.run()
