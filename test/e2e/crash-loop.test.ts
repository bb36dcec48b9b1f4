// proof, timeout: 300s: a daemon that is held again and again until it starts in safe mode
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runningDaemon } from '../../cli/address.js'
import { Installed, until } from './installed.js'

const test = suite<{ at: Installed }>('crash loop')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

/** Milliseconds for the watchdog to act: it goes by the processor time that the daemon had, which may be little. */
const PATIENCE_MS = 240_000
const log = (at: Installed) => readFileSync(join(at.home, 'logs', 'svc.log'), 'utf8')
/** Ends of daemons by the watchdog that the home remembers. */
const ends = (at: Installed): { owner: string }[] => {
  try {
    return JSON.parse(readFileSync(join(at.home, 'watchdog.json'), 'utf8')).ends
  } catch {
    return []
  }
}

/** A drop-in that holds the daemon for ever, soon after it is loaded; the file `held` comes right before. */
function holder(at: Installed, name: string): void {
  at.writeHome(
    `extensions/${name}/extension.toml`,
    `name = "${name}"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.mjs"\n`,
  )
  at.writeHome(
    `extensions/${name}/main.mjs`,
    `import { writeFileSync } from 'node:fs'
    export default {
      name: '${name}', version: '1.0.0', requires: {}, surface: {},
      apply() {
        setTimeout(() => {
          writeFileSync(${JSON.stringify(join(at.home, 'held'))}, '')
          for (;;) {}
        }, 500)
      },
    }`,
  )
}

/** Resolves when a drop-in holds the daemon. */
const isHeld = (at: Installed) =>
  until(
    () => existsSync(join(at.home, 'held')) || undefined,
    60_000,
    () => `acme.hold holds the daemon${at.logTail()}`,
  )

/** An extension with a process, which must not run in safe mode. */
function processOf(at: Installed, name: string): void {
  at.writeHome(
    `extensions/${name}/extension.toml`,
    `name = "${name}"\nversion = "1.0.0"\napiVersion = 1\n[subprocess]\ncommand = "sleep"\nargs = ["1000"]\n`,
  )
}

const statusOf = async (at: Installed) => {
  const { code, stdout } = await at.run(['status', '--json'])
  return code === 0 ? (JSON.parse(stdout).daemon as { pid: number; safe_mode?: string; status: string }) : undefined
}

test('after three crashes the daemon starts in safe mode and reports it; a restart leaves safe mode', async ({
  at,
}) => {
  processOf(at, 'acme.process')
  await at.svc('daemon', 'start')
  // Each holds one daemon; none of them is left out before it has done so.
  for (let n = 0; n < 4; n++) {
    const before = at.discovery.pid
    holder(at, `acme.hold${n}`)
    await until(
      () => (ends(at).length > n ? true : undefined),
      PATIENCE_MS,
      () => `end ${n + 1} by the watchdog${at.logTail()}`,
    )
    await until(
      async () => {
        const now = await statusOf(at)
        return now && now.pid !== before ? true : undefined
      },
      PATIENCE_MS,
      () => `a successor of ${before}${at.logTail()}`,
    )
    assert.is((await statusOf(at))?.safe_mode !== undefined, n === 3, `safe mode after ${n + 1} ends`)
  }
  assert.equal(
    ends(at).map(({ owner }) => owner),
    ['acme.hold0', 'acme.hold1', 'acme.hold2', 'acme.hold3'],
  )
  assert.match(await at.svc('status'), /Safe mode +the watchdog killed the daemon 4 times/)
  const doctor = (await at.run(['doctor'])).stdout
  assert.match(doctor, 'the daemon is in safe mode and runs no extension')
  assert.match(doctor, 'svc daemon stop && svc daemon start')
  assert.match(log(at), 'safe mode, no extensions run')
  const { extensions } = await at.json<{ extensions: { name: string; state: string; pid?: number }[] }>(
    'extension',
    'list',
  )
  for (const { name, state, pid } of extensions) assert.equal([name, state, pid], [name, 'registered', undefined])

  for (let n = 0; n < 4; n++) await at.svc('extension', 'disable', `acme.hold${n}`)
  await at.svc('daemon', 'stop')
  await at.svc('daemon', 'start')
  assert.is((await statusOf(at))?.safe_mode, undefined)
  await at.svc('daemon', 'stop')
})

test('a daemon started in safe mode by a person allows to disable extensions', async ({ at }) => {
  holder(at, 'acme.hold')
  await at.svc('daemon', 'start', '--safe-mode')
  assert.match((await statusOf(at))?.safe_mode ?? '', '--safe-mode')
  const { stderr } = await at.run(['daemon', 'restart'])
  assert.match(stderr, 'no extensions run: it was started with --safe-mode', 'a restart repeats that, and says so')
  await at.svc('extension', 'disable', 'acme.hold')
  const again = await at.run(['daemon', 'start', '--safe-mode'])
  assert.is(again.code, 5, again.stderr)
  await at.svc('daemon', 'stop')
  await at.svc('daemon', 'start')
  await sleep(1500)
  assert.is((await statusOf(at))?.safe_mode, undefined)
  await at.svc('daemon', 'stop')
})

test('a stop requested while the daemon is blocked is final', async ({ at }) => {
  await at.svc('daemon', 'start')
  const { pid } = at.discovery
  holder(at, 'acme.hold')
  await isHeld(at)
  const { code, stdout, stderr } = await at.run(['daemon', 'stop'])
  if (code === 0) assert.match(stdout, `daemon stopped (pid ${pid})`)
  else {
    // On a busy machine the watchdog takes longer than the command waits; that a stop was asked for holds all the same.
    assert.match(stderr, 'daemon_stop_timeout')
    await until(
      async () => (await runningDaemon(at.home)) === undefined || undefined,
      PATIENCE_MS,
      () => `the end of ${pid}`,
    )
  }
  for (let n = 0; n < 50; n++) {
    assert.is(await runningDaemon(at.home), undefined, 'no successor runs')
    await sleep(100)
  }
})

test('a stop requested after the kill, before the successor has the lock, is final', async ({ at }) => {
  // What the watchdog starts, started by hand at the worst moment: after the stop has said that nothing runs.
  await at.svc('daemon', 'start')
  await at.svc('daemon', 'stop')
  assert.match(await at.svc('daemon', 'stop'), 'no daemon is running')
  const { spawnSync } = await import('node:child_process')
  const program = new URL('../../dist/daemon.cjs', import.meta.url).pathname
  const successor = spawnSync(process.execPath, [program, '--successor'], {
    cwd: at.home,
    env: at.env,
    timeout: 30_000,
  })
  assert.is(successor.status, 0)
  assert.match(log(at), 'svc daemon stop was asked for')
  await at.svc('daemon', 'start')
  assert.ok((await statusOf(at))?.pid)
  await at.svc('daemon', 'stop')
})

test('an extension disabled while the daemon is blocked stays disabled in the successor', async ({ at }) => {
  await at.svc('daemon', 'start')
  const { pid } = at.discovery
  holder(at, 'acme.hold')
  await isHeld(at)
  const disabled = await at.run(['extension', 'disable', 'acme.hold'])
  assert.is(disabled.code, 0, disabled.stderr)
  await until(
    async () => {
      const now = await statusOf(at)
      return now && now.pid !== pid ? true : undefined
    },
    PATIENCE_MS,
    () => 'the successor',
  )
  const { extension } = await at.json<{ extension: { enabled: boolean } }>('extension', 'info', 'acme.hold')
  assert.is(extension.enabled, false)
  assert.not(existsSync(join(at.home, 'disable', 'acme.hold')), 'the note was taken')
  await at.svc('daemon', 'stop')
})

test('an extension is disabled while no daemon runs', async ({ at }) => {
  holder(at, 'acme.hold')
  const { code, stdout } = await at.run(['extension', 'disable', 'acme.hold'])
  assert.is(code, 0)
  assert.match(stdout, 'acme.hold is disabled from its next start')
  await at.svc('daemon', 'start')
  await until(
    async () => ((await at.run(['extension', 'info', 'acme.hold'])).code === 0 ? true : undefined),
    60_000,
    () => 'acme.hold in the list',
  )
  const { extension } = await at.json<{ extension: { enabled: boolean } }>('extension', 'info', 'acme.hold')
  assert.is(extension.enabled, false)
  await at.svc('daemon', 'stop')
})

test.run()
