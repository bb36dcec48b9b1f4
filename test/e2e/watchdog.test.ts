// proof, timeout: 180s: a thread that is really held, for half a minute
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from './installed.js'

const test = suite<{ at: Installed }>('watchdog')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

/** Milliseconds: many times what anything takes, for the machine may be busy. */
const PATIENCE_MS = 90_000
const log = (at: Installed) => readFileSync(join(at.home, 'logs', 'svc.log'), 'utf8')

/**
 * A drop-in that at each SIGUSR2 holds the thread, as many milliseconds as {@link hold} says: time in which it waits for a processor holds nobody, and
 * does not count.
 */
function holder(at: Installed, ms = 0): void {
  hold(at, ms)
  at.writeHome(
    'extensions/acme.spin/extension.toml',
    'name = "acme.spin"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.mjs"\n',
  )
  at.writeHome(
    'extensions/acme.spin/main.mjs',
    `import { readFileSync } from 'node:fs'
    const cell = new Int32Array(new SharedArrayBuffer(4))
    function spin(ms) {
      for (let left = ms / 20; left > 0; left--) Atomics.wait(cell, 0, 0, 20)
    }
    export default {
      name: 'acme.spin', version: '1.0.0', requires: {}, surface: {},
      apply() { process.on('SIGUSR2', () => spin(Number(readFileSync(${JSON.stringify(join(at.home, 'hold'))}, 'utf8')))) },
    }`,
  )
}

/** For how long the drop-in holds the thread with the next SIGUSR2. */
const hold = (at: Installed, ms: number) => at.writeHome('hold', String(ms))

const stateOf = async (at: Installed) => {
  const { plugins } = await at.json<{ plugins: { name: string; state: string }[] }>('plugin', 'list')
  return plugins.find(({ name }) => name === 'acme.spin')?.state
}
const becomes = (at: Installed, state: string) =>
  until(
    async () => (await stateOf(at)) === state || undefined,
    PATIENCE_MS,
    () => `acme.spin ${state}`,
  )

test('an extension that blocks the daemon is named; if it blocks forever, a daemon without it follows, once', async ({
  at,
}) => {
  holder(at, 3500)
  await at.svc('daemon', 'start')
  await becomes(at, 'active')
  const { pid } = at.discovery
  let held = Number.NEGATIVE_INFINITY
  await until(
    () => {
      // Who looks is a thread of its own, and may be given no processor before the first hold is over.
      if (performance.now() - held > 15_000) {
        held = performance.now()
        process.kill(pid, 'SIGUSR2')
      }
      return (
        /"acme\.spin blocked the event loop of the daemon for \d+ s in spin \(acme\.spin\/main\.mjs:\d+\)"/.test(
          log(at),
        ) || undefined
      )
    },
    PATIENCE_MS,
    () => `acme.spin in the log:\n${log(at)}`,
  )
  assert.is(at.discovery.pid, pid, 'it goes on')
  assert.match((await at.run(['doctor'])).stdout, /acme\.spin failed in event loop: it blocked the event loop in spin/)

  hold(at, Number.POSITIVE_INFINITY)
  process.kill(pid, 'SIGUSR2')
  await until(
    async () => {
      const { code, stdout } = await at.run(['status', '--json'])
      return code === 0 && JSON.parse(stdout).daemon.pid !== pid ? true : undefined
    },
    PATIENCE_MS,
    () => 'the daemon that follows',
  )
  assert.match(
    (await at.run(['doctor'])).stdout,
    /acme\.spin failed in watchdog: it blocked the event loop of the daemon \(pid \d+\) for \d+ s/,
  )
  await becomes(at, 'disabled')
  assert.not(existsSync(join(at.home, 'suspect.json')), 'it is left out once')
  await at.svc('daemon', 'stop')
})

test('a slow daemon on a shared processor is not stopped', async ({ at }) => {
  at.writeHome(
    'extensions/acme.spin/extension.toml',
    'name = "acme.spin"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.mjs"\n',
  )
  at.writeHome(
    'extensions/acme.spin/main.mjs',
    `import { writeFileSync } from 'node:fs'
    export default {
      name: 'acme.spin', version: '1.0.0', requires: {}, surface: {},
      apply() {
        process.on('SIGUSR2', () => {
          for (const end = process.cpuUsage().user + 600_000; process.cpuUsage().user < end; );
          writeFileSync(${JSON.stringify(join(at.home, 'worked'))}, '')
        })
      },
    }`,
  )
  await at.svc('daemon', 'start')
  await becomes(at, 'active')
  const { pid } = at.discovery
  // Sessions of their own: a scheduler that is fair between sessions would give the daemon half of the processor.
  const crowd = Array.from({ length: 24 }, () =>
    spawn('taskset', ['-c', '0', 'sh', '-c', 'while :; do :; done'], { detached: true, stdio: 'ignore' }),
  )
  try {
    execFileSync('taskset', ['-a', '-c', '-p', '0', String(pid)])
    const startedAt = performance.now()
    process.kill(pid, 'SIGUSR2')
    await until(
      () => existsSync(join(at.home, 'worked')) || undefined,
      300_000,
      () => `the end of the work:\n${log(at)}`,
    )
    assert.ok(performance.now() - startedAt > 6000, 'it took longer than a thread may be held')
  } finally {
    for (const child of crowd) child.kill('SIGKILL')
  }
  await at.svc('status')
  assert.is(at.discovery.pid, pid)
  await at.svc('daemon', 'stop')
})

test('a blocked foreground daemon ends, and the next start gives the reason', async ({ at }) => {
  holder(at, Infinity)
  const daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/)
  await becomes(at, 'active')
  daemon.child.kill('SIGUSR2')
  const { stderr } = await daemon.ended
  assert.match(stderr, 'the event loop of the daemon is blocked in spin')
  assert.match(stderr, 'of acme.spin')
  await at.svc('daemon', 'start')
  assert.match((await at.run(['doctor'])).stdout, /acme\.spin failed in watchdog: .* it does not run/)
  await at.svc('daemon', 'stop')
  await at.svc('daemon', 'start')
  await becomes(at, 'active')
})

test('an extension that blocks during import is skipped at the next start', async ({ at }) => {
  holder(at)
  at.writeHome('extensions/acme.spin/main.mjs', 'for (;;) {}\n')
  const daemon = at.start(['daemon', 'start', '--foreground'])
  const { stderr } = await daemon.ended
  assert.match(stderr, 'of acme.spin')
  await at.svc('daemon', 'start')
  await becomes(at, 'disabled')
  await at.svc('daemon', 'stop')
})

test.run()
