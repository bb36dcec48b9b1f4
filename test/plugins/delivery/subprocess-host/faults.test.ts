import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { memoryOf } from '../../../../plugins/delivery/subprocess-host/memory.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type Made, type Making, type Scene, scene, until } from './scene.js'

let world: Scene
let clock: VirtualClock
/** One that behaves while the others do not. */
let other: Made
test.before(async () => {
  clock = new VirtualClock()
  world = await scene({ clock, env: { ...process.env, PROBE_SECRET: 's3cret-value' } })
  // Virtual time flies past the answers to its health checks.
  other = await world.make({ name: 'other', permissions: ['observe/health'], limits: { escalation: 0 } })
  await other.runtime.start()
})
test.after(async () => {
  await world.close()
})

const gone = (pid: number) => assert.throws(() => process.kill(pid, 0), /ESRCH/)
const works = async () => assert.is((await other.ask('observe/health')).result?.daemon?.pid, process.pid)

/** A running process that does this: why it failed, once nothing is left of it and another one is planned. */
async function failureOf(
  what: string,
  making: Making = {},
  more: object = {},
): Promise<{ reason: string; made: Made }> {
  const made = await world.make(making)
  await made.runtime.start()
  const pid = made.runtime.health().pid ?? 0
  made.tell(what, more).catch(() => {})
  await until(() => made.runtime.state.status === 'waiting')
  gone(pid)
  await works()
  const { message = '', restartBackoffMs, consecutiveFailures, health } = made.runtime.health()
  assert.equal(
    { restartBackoffMs, consecutiveFailures, health },
    {
      restartBackoffMs: 1000,
      consecutiveFailures: 1,
      health: 'unhealthy',
    },
  )
  return { reason: message, made }
}

const faults: readonly (readonly [string, string, object, RegExp])[] = [
  ['writes garbage', 'garbage', {}, /100 lines in a row that are not messages/],
  ['answers an unknown request', 'strangers', {}, /100 lines in a row that are not messages/],
  ['floods with notifications', 'notifications', {}, /floods the daemon/],
  ['writes an endless line', 'line', { bytes: 9 * 1024 * 1024 }, /a line of more than 8388608 bytes/],
  ['exits later', 'exit', { code: 7 }, /ended with code 7/],
]
const MIB = 2 ** 20
const limited = { limits: { maxMemory: 200 * MIB, escalation: 0 } }
const TOO_MUCH = /it used \d+ MiB of memory, more than 200 MiB \(extensions\.max_memory_bytes\)/
const isLinux = process.platform === 'linux'

/** Python that takes memory and then has processes that share it. */
const python = (mebibytes: number, forks: number) => [
  'python3',
  '-c',
  `import os, time\nkept = b"x" * (${mebibytes} << 20)\nfor n in range(${forks}):\n  if os.fork() == 0: break\ntime.sleep(60)`,
]

if (isLinux)
  test('a process that takes too much memory is killed and restarted', async () => {
    const made = await world.make(limited)
    await made.runtime.start()
    const pid = made.runtime.health().pid ?? 0
    await clock.advance(5000)
    assert.is(made.runtime.state.status, 'ready', 'it may use what it needs')
    await made.tell('grow', { bytes: 300 * MIB })
    await clock.advance(2500)
    await until(() => made.runtime.state.status === 'waiting')
    gone(pid)
    assert.match(made.runtime.health().message ?? '', TOO_MUCH)
    assert.match(made.said(), TOO_MUCH)
    await made.runtime.stop()
  })

if (isLinux)
  test('the memory of programs counts that any of its threads started; what forks share counts once', async () => {
    const made = await world.make(limited)
    await made.runtime.start()
    const pid = made.runtime.health().pid ?? 0
    await made.tell('spawn', { argv: python(60, 5) })
    const forked = () => memoryOf(pid, Number.POSITIVE_INFINITY) > 350 * MIB
    await until(forked)
    await clock.advance(2500)
    assert.ok(made.runtime.state.status === 'ready' && forked())
    await made.tell('spawn', { argv: python(200, 0) })
    // Virtual time must not fly past the end of what is killed.
    await until(() => memoryOf(pid, 200 * MIB) > 200 * MIB)
    await clock.advance(2500)
    await until(() => made.runtime.state.status === 'waiting')
    assert.match(made.said(), TOO_MUCH)
    await made.runtime.stop()
  })

if (isLinux)
  test('a process for a single piece of work has the same limit', async () => {
    const made = await world.make(limited)
    await made.runtime.start()
    let hasGrown = false
    const grow = { do: 'grow', bytes: 300 * MIB }
    const work = made.runtime.control(
      { runtime: { members: {}, secrets: [] }, methods: new Map(), passes: [] },
      async process => {
        await process.call('tools/call', grow, 60_000)
        hasGrown = true
        return new Promise(() => {})
      },
      new AbortController().signal,
    )
    let error: { code?: string; message?: string } | undefined
    work.catch(failure => {
      error = failure
    })
    await until(() => hasGrown || error !== undefined)
    await clock.advance(2500)
    await until(() => error !== undefined)
    assert.is(error?.code, 'extension_call_failed')
    assert.match(error?.message ?? '', TOO_MUCH)
    assert.is(made.runtime.state.status, 'ready', 'its own process continues')
    await made.runtime.stop()
  })

for (const [what, doing, more, expected] of faults) {
  test(`a process that ${what} is killed and restarted; the other one continues`, async () => {
    const { reason, made } = await failureOf(doing, {}, more)
    assert.match(reason, expected)
    assert.match(made.said(), expected)
    await clock.advance(1000)
    await until(() => made.runtime.state.status === 'ready')
    await made.runtime.stop({ deadlineMs: 0 })
  })
}

test('garbage at the start is shown in the log', async () => {
  const made = await world.make({ ways: { at: 'garbage' } })
  const error = await made.runtime.start().catch(failure => failure)
  assert.match(String(error), /not messages/)
  assert.match(made.said(), /not a message: Welcome!/)
  await made.runtime.stop({ deadlineMs: 0 })
})

test('a process that does not read its input is killed', async () => {
  const made = await world.make()
  await made.runtime.start()
  made.tell('deaf').catch(() => {})
  const sent = Array.from({ length: 40 }, () =>
    made.runtime.call('tools/call', { do: 'x'.repeat(1024 * 1024) }).catch(error => error.message as string),
  )
  assert.match(String((await Promise.all(sent)).at(-1)), /does not read its input/)
  await until(
    () => made.runtime.state.status === 'waiting',
    () => clock.advance(100),
  )
  await works()
  await made.runtime.stop({ deadlineMs: 0 })
})

test('a call without an answer ends at its deadline, and at most 256 wait', async () => {
  const { runtime, tell } = await world.make()
  await runtime.start()
  const calls = Array.from({ length: 300 }, () => tell('silent').catch(error => error.message as string))
  const refusals = await Promise.all(calls.slice(256))
  assert.ok(refusals.every(text => /256 requests are already waiting/.test(text)))
  await clock.advance(60_000)
  assert.match(await (calls[0] as Promise<string>), /no answer to tools\/call within 60 s \(extensions\.call_timeout\)/)
  assert.is(runtime.health().consecutiveFailures, 0)
  await runtime.stop({ deadlineMs: 0 })
})

test('unimplemented methods are not sent, and errors of a process are reported without secrets', async () => {
  const { runtime, tell, said } = await world.make({ subprocess: { secret_env: { KEY: 'env:PROBE_SECRET' } } })
  await runtime.start()
  const code = (failure: { code: string }) => failure.code
  assert.is(await runtime.call('models/list', {}).catch(code), 'extension_method_missing')
  const refused = await tell('refuse').catch(failure => failure)
  assert.is(refused.code, 'extension_call_failed')
  assert.match(refused.message, /: token \[redacted\] is wrong$/)
  await tell('say', { text: 'my key is s3cret-value, s3cret-value!\n' })
  await until(() => /my key is \[redacted\], \[redacted\]!/.test(said()))
  await runtime.stop({ deadlineMs: 0 })
  assert.is(await runtime.call('tools/call', {}).catch(code), 'extension_not_running')
})

test('health is probed: healthy, unhealthy, and killed after three failures in a row', async () => {
  const { runtime, tell } = await world.make()
  const seen: string[] = []
  runtime.onChange(() => seen.push(runtime.state.status))
  await runtime.start()
  await clock.advance(30_000)
  await until(() => runtime.health().health === 'healthy')
  await tell('unhealthy')
  for (let checks = 1; checks <= 3; checks++) {
    await clock.advance(30_000)
    await until(() => seen.length >= 3 + checks)
    if (checks === 3) break
    assert.equal(runtime.health(), { ...runtime.health(), health: 'unhealthy', message: 'the source is away' })
    assert.is(runtime.health().consecutiveFailures, 0)
  }
  await until(() => runtime.state.status === 'waiting')
  assert.match(runtime.health().message ?? '', /unhealthy, 3 checks in a row: the source is away/)
  assert.equal(seen, ['starting', 'ready', 'healthy', 'unhealthy', 'unhealthy', 'unhealthy', 'ending', 'waiting'])
  await runtime.stop({ deadlineMs: 0 })
})

test('a health reply without its required member is reported as such', async () => {
  const { runtime, tell } = await world.make()
  await runtime.start()
  await tell('vague')
  await clock.advance(30_000)
  await until(() => runtime.health().health === 'unhealthy')
  assert.is(runtime.health().message, 'its answer to health_check has no member healthy that is true or false')
  await runtime.stop({ deadlineMs: 0 })
})

test('a process without a health reply is unhealthy', async () => {
  const { runtime } = await world.make({ ways: { ignore: ['health_check'] } })
  await runtime.start()
  await until(
    () => runtime.health().health === 'unhealthy',
    () => clock.advance(1000),
  )
  assert.match(runtime.health().message ?? '', /no answer to health_check within 5 s/)
  await runtime.stop({ deadlineMs: 0 })
})

test('a shutdown is requested, then forced', async () => {
  const polite = await world.make()
  await polite.runtime.start()
  await polite.runtime.stop()
  assert.match(polite.said(), /shutdown: stop/)

  const stubborn = await world.make({
    ways: { ignore: ['shutdown', 'SIGTERM', 'end'] },
    subprocess: { shutdown_timeout: '3s' },
  })
  await stubborn.runtime.start()
  const pid = stubborn.runtime.health().pid ?? 0
  const began = clock.monotonic()
  let over = false
  const stopped = stubborn.runtime.stop().then(() => {
    over = true
  })
  await until(
    () => over,
    () => clock.advance(200),
  )
  await stopped
  gone(pid)
  // Three seconds for the shutdown and ten for SIGTERM; the machine's part of it passes in steps of the virtual clock.
  assert.ok(clock.monotonic() - began >= 13_000)
})

test('five failures in a row disable a process; a successful health check resets the count', async () => {
  const { runtime, tell, said } = await world.make({ name: 'crashing' })
  await runtime.start()
  const pauses: number[] = []
  const crash = async () => {
    tell('exit', { code: 1 }).catch(() => {})
    await until(() => ['waiting', 'given_up'].includes(runtime.state.status))
    const { restartBackoffMs } = runtime.health()
    if (runtime.state.status === 'given_up') return
    pauses.push(restartBackoffMs)
    await clock.advance(restartBackoffMs - 1)
    assert.is(runtime.state.status, 'waiting')
    await clock.advance(1)
    await until(() => runtime.state.status === 'ready')
  }
  await crash()
  await crash()
  await clock.advance(30_000)
  await until(() => runtime.health().health === 'healthy')
  assert.is(runtime.health().consecutiveFailures, 0)
  for (let i = 0; i < 5; i++) await crash()
  assert.equal(pauses, [1000, 2000, 1000, 2000, 4000, 8000])
  const events = await world.kernel.needs.events.list({ name: 'extension.crash_loop.backoff' })
  assert.equal(
    events.map(event => event.payload),
    [{ name: 'crashing', failures: 5, error: 'the process ended with code 1' }],
  )
  const { disabled, message, pid } = runtime.health()
  assert.equal({ disabled, message, pid }, { disabled: true, message: 'the process ended with code 1', pid: undefined })
  const before = said()
  await clock.advance(600_000)
  assert.is(said(), before)
  await runtime.stop()
  await works()
})

test('a process that floods its log is muted, killed, and restarted after a while', async () => {
  const { runtime, logs, said, tell } = await world.make()
  await runtime.start()
  const first = runtime.health().pid
  await tell('shout')
  await until(() => runtime.health().restartBackoffMs > 0)
  assert.is(runtime.health().message, 'it floods its standard error')
  assert.is(said().match(/muted: it writes more/g)?.length, 1)
  assert.ok((logs.muted?.dropped ?? 0) > 2 ** 20, 'what was dropped is counted')
  await clock.advance(1000)
  await until(() => (runtime.health().pid ?? first) !== first)
  await runtime.stop({ deadlineMs: 0 })
})

test('a process that floods its output with empty lines is killed', async () => {
  const { runtime, tell } = await world.make()
  await runtime.start()
  await tell('blank').catch(() => {})
  await until(() => runtime.health().restartBackoffMs > 0)
  assert.match(runtime.health().message ?? '', 'lines in a row that are not messages')
  await runtime.stop({ deadlineMs: 0 })
})

test('the output of a process is kept in a ring of 256 KiB, without secrets', async () => {
  const { runtime, said } = await world.make({ ways: { at: 'exit' } })
  await runtime.start().catch(() => {})
  assert.match(said(), /nothing works: token=\[redacted\]/)
  await runtime.stop({ deadlineMs: 0 })
  const loud = await world.make()
  await loud.runtime.start()
  await loud.tell('say', { text: `first\n${'y'.repeat(1000)}\n`.repeat(400) })
  await loud.tell('say', { text: `${'z'.repeat(100_000)}\nlast\n` })
  await until(() => loud.said().endsWith('last'))
  const entries = loud.logs.entries()
  const bytes = entries.reduce((sum, { message }) => sum + Buffer.byteLength(message), 0)
  assert.ok(bytes <= 256 * 1024 && bytes > 200 * 1024, `${bytes} bytes`)
  assert.is(entries.at(-2)?.message.length, 16 * 1024)
  assert.equal(
    entries.map(entry => entry.sequence),
    entries.map((_, i) => (entries[0]?.sequence ?? 0) + i),
  )
  await loud.runtime.stop({ deadlineMs: 0 })
})

test.run()
