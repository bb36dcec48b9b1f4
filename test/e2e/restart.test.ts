// proof, timeout: 300s: restarts of a real daemon, with each of the three processes killed at each status
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runningDaemon } from '../../cli/address.js'
import { inspectProcess } from '../../plugins/platform/processes/inspect.js'
import { Operations, type StoredOperation } from '../../plugins/platform/restart/operations.js'
import { isOpen } from '../../plugins/platform/restart/states.js'
import type { RestartStatus } from '../../schemas/daemon/restart.js'
import { chance as chanceOf } from '../proofs/library/chance.js'
import { firstSeed } from '../proofs/library/seed.js'
import { Installed, program, until } from './installed.js'

const path = '/api/settings/actions/restart'
/** Kills at a moment that chance decides, beside those at each status. */
const RANDOM_KILLS = Number(process.env.KILLS ?? 6)
const WITHIN_MS = 90_000

const test = suite<{ at: Installed }>('restart')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

/** Pids of this home's processes of the daemon's program: daemons, those that wait for the lock, and helpers. */
function programs(at: Installed): { daemons: number[]; helpers: number[] } {
  const found = { daemons: [] as number[], helpers: [] as number[] }
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || inspectProcess(Number(name), process.platform)?.ended !== false) continue
    const read = (file: string) => {
      try {
        return readFileSync(`/proc/${name}/${file}`, 'utf8').split('\0')
      } catch {
        return []
      }
    }
    const words = read('cmdline')
    if (!words.some(word => word.endsWith('/daemon.cjs')) || !read('environ').includes(`SVC_HOME=${at.home}`)) continue
    found[words.includes('--restart') ? 'helpers' : 'daemons'].push(Number(name))
  }
  return found
}

const operationsOf = (at: Installed) => new Operations(at.home)
const kill = (pid: number | undefined) => {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  } catch {}
}

/** Waits until the newest restart has ended and one process of the program is left, which is the daemon that answers. */
async function settled(at: Installed, id: string, killed?: number): Promise<StoredOperation> {
  const what = () => `the end of ${JSON.stringify(operationsOf(at).read(id))} with one daemon${at.logTail()}`
  return until(
    () => {
      const operation = operationsOf(at).read(id)
      const { daemons, helpers } = programs(at)
      // One that was killed behind its last status was restarted, and then crashed.
      const rest = operation?.status === 'ready' && operation.new_pid !== killed ? 1 : daemons.length
      return operation && !isOpen(operation.status) && daemons.length === rest && helpers.length === 0
        ? operation
        : undefined
    },
    WITHIN_MS,
    what,
  )
}

async function answers(at: Installed): Promise<number> {
  const { daemon } = await at.json<{ daemon: { pid: number } }>('status')
  return daemon.pid
}

async function begin(at: Installed): Promise<string> {
  const { status, text } = await at.request('socket', 'POST', path)
  assert.is(status, 202, text)
  return JSON.parse(text).operation_id
}

test('svc daemon restart replaces the daemon, and the new daemon serves the operation', async ({ at }) => {
  await at.svc('daemon', 'start')
  const before = await answers(at)
  const reply = await at.json<{ status: string; pid: number; old_pid: number; operation_id: string }>(
    'daemon',
    'restart',
  )
  assert.equal([reply.status, reply.old_pid, reply.pid], ['restarted', before, await answers(at)])
  assert.is.not(reply.pid, before)
  const { status, text } = await at.request('socket', 'GET', `${path}/${reply.operation_id}`)
  const operation = JSON.parse(text)
  assert.equal(
    [status, operation.status, operation.old_pid, operation.new_pid],
    [200, 'ready', before, reply.pid],
    'by the new daemon',
  )
  assert.is(statSync(join(at.home, 'restarts')).mode & 0o777, 0o700)
  assert.match(
    await at.svc('daemon', 'restart'),
    new RegExp(`^daemon restarted \\(pid ${reply.pid}, now \\d+\\), http`),
  )
  await settled(at, reply.operation_id)
})

test('svc daemon restart without a daemon starts one', async ({ at }) => {
  assert.match(await at.svc('daemon', 'restart'), /^no daemon was running: daemon started/)
  assert.ok((await answers(at)) > 0)
})

test('a foreground daemon is not restarted by svc daemon restart', async ({ at }) => {
  const daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/)
  const { code, stderr } = await at.run(['daemon', 'restart'])
  assert.is(code, 1)
  assert.match(stderr, /cannot restart itself: it runs in the foreground/)
  assert.is(await answers(at), daemon.child.pid)
})

test('a restart whose Node was removed by an upgrade says so, and a stop and a start have another one', async ({
  at,
}) => {
  const bin = join(at.folder, 'node-of-before')
  mkdirSync(bin)
  const node = join(bin, 'node')
  copyFileSync(process.execPath, node)
  execFileSync(node, [program, 'daemon', 'start'], { env: at.env })
  const pid = await answers(at)
  rmSync(bin, { recursive: true })
  const { code, stderr } = await at.run(['daemon', 'restart'])
  assert.is(code, 1)
  assert.match(
    stderr,
    /node-of-before\/node, with which this daemon was started, no longer exists; the daemon keeps running/,
  )
  assert.match(stderr, 'next: svc daemon stop && svc daemon start')
  assert.is(await answers(at), pid)
  await at.svc('daemon', 'stop')
  await at.svc('daemon', 'start')
  assert.is.not(await answers(at), pid)
})

test('an interrupted restart command is joined by the next one', async ({ at }) => {
  await at.svc('daemon', 'start')
  const before = await answers(at)
  const first = at.start(['daemon', 'restart'])
  const operation = await until(
    () => operationsOf(at).open(),
    WITHIN_MS,
    () => 'an operation',
  )
  first.child.kill('SIGKILL')
  await first.ended
  const next = await at.json<{ old_pid?: number; pid: number }>('daemon', 'restart')
  assert.is((await settled(at, operation.operation_id)).status, 'ready')
  assert.is.not(next.pid, before)
  assert.is(await answers(at), next.pid)
})

test('a new daemon that cannot start leaves a failed operation with the reason and a way back', async ({ at }) => {
  await at.svc('daemon', 'start')
  const before = await answers(at)
  at.writeHome('svc.db-journal', 'of another program')
  const { code, stderr } = await at.run(['daemon', 'restart'])
  assert.is(code, 1, at.logTail())
  assert.match(stderr, /the restart failed: the new daemon did not start: .*rollback journal/s)
  assert.match(stderr, /svc daemon start/)
  assert.is(await runningDaemon(at.home), undefined)
  assert.is(operationsOf(at).list()[0]?.old_pid, before)
  rmSync(join(at.home, 'svc.db-journal'))
  assert.match(await at.svc('daemon', 'restart'), /^no daemon was running: daemon started/)
})

test('an invalid configuration refuses a restart, and the daemon continues', async ({ at }) => {
  await at.svc('daemon', 'start')
  const before = await answers(at)
  at.writeHome('config.json', '{\n  "http": { "port": 0 },\n  "log": { "level": "debug",\n  "permisions": {}\n}')
  const place = /config\.json:3: not valid JSON: this \{ is not closed/
  const { code, stderr } = await at.run(['daemon', 'restart'])
  assert.is(code, 7)
  assert.match(stderr, place)
  assert.is(operationsOf(at).list().length, 0)
  const operation = await settled(at, await begin(at))
  assert.is(operation.status, 'failed')
  assert.match(operation.failure_reason ?? '', place)
  assert.is(await answers(at), before)

  await at.svc('daemon', 'stop')
  const started = await at.run(['daemon', 'start'])
  assert.match(started.stderr, place)
  const checked = await at.run(['config', 'check'])
  assert.is(checked.code, 7)
  assert.match(checked.stdout, place)
})

test('svc config check without a daemon lists all mistakes', async ({ at }) => {
  at.writeHome('config.json', '{\n  "permisions": {},\n  "log": { "levle": "info" },\n  "http": { "port": "x" }\n}')
  const { code, stdout } = await at.run(['config', 'check'])
  assert.is(code, 7)
  assert.match(stdout, /:2: unknown key permisions; did you mean permissions\?/)
  assert.match(stdout, /:3: unknown key log\.levle; did you mean log\.level\?/)
  assert.match(stdout, /:4: http\.port: /)
})

test('svc daemon stop during a restart wins: no daemon follows', async ({ at }) => {
  await at.svc('daemon', 'start')
  const id = await begin(at)
  await at.svc('daemon', 'stop')
  const operation = await settled(at, id)
  if (operation.status === 'failed')
    assert.match(operation.failure_reason ?? '', /the daemon was stopped during the restart/)
  await until(
    async () => ((await runningDaemon(at.home)) === undefined ? true : undefined),
    WITHIN_MS,
    () => `the end of the daemon${at.logTail()}`,
  )
})

type Victim = 'old daemon' | 'helper' | 'new daemon'

/** Pid of a process of the operation; the new daemon is the child of the helper until it says itself who it is. */
function pidOf(at: Installed, victim: Victim, { old_pid, helper_pid, new_pid }: StoredOperation): number | undefined {
  if (victim === 'old daemon') return old_pid
  if (victim === 'helper') return helper_pid
  return new_pid ?? programs(at).daemons.find(pid => pid !== old_pid)
}

const cases: readonly (readonly [RestartStatus, readonly Victim[]])[] = [
  ['pending', ['old daemon', 'helper']],
  ['stopping', ['old daemon', 'helper']],
  ['waiting_release', ['old daemon', 'helper', 'new daemon']],
  ['starting', ['helper', 'new daemon']],
]

for (const [status, victims] of cases) {
  for (const victim of victims) {
    test(`a kill of the ${victim} in ${status} leaves one daemon, and the operation ends`, async ({ at }) => {
      await at.svc('daemon', 'start')
      const before = await answers(at)
      const id = await begin(at)
      const operations = operationsOf(at)
      let killed: number | undefined
      while (killed === undefined) {
        const now = operations.read(id)
        if (!now || !isOpen(now.status)) break
        if (now.status === status) killed = pidOf(at, victim, now)
        else await turn()
      }
      kill(killed)
      const operation = await settled(at, id, killed)
      if (operation.new_pid === killed) return
      assert.is(operation.status, 'ready', `${killed}: ${JSON.stringify(operation)}${at.logTail()}`)
      assert.is.not(await answers(at), before)
      assert.is((await at.run(['doctor', '--json'])).code, 0)
    })
  }
}

test('kills at random moments leave one daemon, or a reason and a way back', async ({ at }) => {
  const seed = firstSeed()
  const chance = chanceOf(seed)
  await at.svc('daemon', 'start')
  for (let n = 0; n < RANDOM_KILLS; n++) {
    const id = await begin(at)
    const victim = chance.of(['old daemon', 'helper', 'new daemon'] as const)
    const ms = chance.int(600)
    await new Promise(resolve => setTimeout(resolve, ms))
    const now = operationsOf(at).read(id)
    const killed = now && isOpen(now.status) ? pidOf(at, victim, now) : undefined
    kill(killed)
    const about = () => `kill ${n} of the ${victim} after ${ms} ms, seed ${seed}`
    const operation = await settled(at, id, killed)
    if (operation.status === 'failed') assert.ok(operation.failure_reason, about())
    else if (operation.new_pid !== killed) assert.is(await answers(at), operation.new_pid, about())
    await at.svc('daemon', 'start')
  }
})

test('after a kill of all three processes the next svc daemon restart ends the operation with a daemon', async ({
  at,
}) => {
  await at.svc('daemon', 'start')
  const id = await begin(at)
  // Twice, for each looks after another.
  for (let n = 0; n < 3; n++) {
    const { daemons, helpers } = programs(at)
    for (const pid of [...helpers, ...daemons]) kill(pid)
  }
  await until(
    async () => ((await runningDaemon(at.home)) === undefined ? true : undefined),
    WITHIN_MS,
    () => 'the end of all',
  )
  assert.match(await at.svc('daemon', 'restart'), /^(daemon restarted|no daemon was running)/)
  assert.is((await settled(at, id)).status, 'ready')
  assert.ok(existsSync(join(at.home, 'restarts', `${id}.json`)))
})

test.run()
