import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  idsOf,
  inspectProcess,
  inspectProcesses,
  walkProcesses,
} from '../../../../plugins/platform/processes/inspect.js'

const scratch = mkdtempSync(join(tmpdir(), 'svc-inspect-'))
const children: ChildProcess[] = []

function start(command: string, env: Record<string, string> = {}): number {
  const child = spawn(command, ['1000'], { detached: true, stdio: 'ignore', env })
  children.push(child)
  return child.pid!
}

test.after(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(scratch, { recursive: true, force: true })
})

test('both inspection methods agree on a process, whatever its name', () => {
  const awkward = join(scratch, 'a) Z 1 (b')
  symlinkSync('/bin/sleep', awkward)
  const pid = start(awkward)
  for (const platform of ['linux', 'darwin'] as const) {
    if (!existsSync(platform === 'linux' ? '/proc/self/stat' : '/bin/ps')) continue
    const one = inspectProcess(pid, platform)
    assert.equal(
      { ...one, startTime: '', name: '' },
      { pid, parent: process.pid, group: pid, startTime: '', name: '', ended: false, mark: 0 },
    )
    assert.ok(one!.startTime.length > 0)
    assert.match(one!.name, 'a) Z 1 (b')
    assert.equal(inspectProcesses(platform).get(pid), one)
    assert.is(inspectProcess(2 ** 30, platform), undefined)
    for (const no of [0, -1, 1.5, Number.NaN]) assert.is(inspectProcess(no, platform), undefined)
  }
})

test('the daemon variables of an environment are read completely or not at all', () => {
  if (process.platform !== 'linux') return
  const pid = start('/bin/sleep', {
    FIRST: 'x',
    SVC_HOME_ID: 'home-1',
    LAST: 'SVC_HOME_ID=home-2',
    SVC_PROCESS_IDS: 'y',
  })
  assert.equal(idsOf(pid, 'linux'), { homeId: 'home-1', processId: '' })
  assert.equal(idsOf(2 ** 30, 'linux'), { homeId: '', processId: '' })
  assert.equal(idsOf(pid, 'darwin'), { homeId: '', processId: '' })
})

/**
 * A process that has ended and that nobody waits for. The shell would collect a child that ends while it still is the
 * shell, so the child ends only after the shell has become another program.
 */
async function startZombie(): Promise<number> {
  const parent = spawn('/bin/sh', ['-c', 'exec 3<&0; (read line <&3) & echo $!; exec sleep 1000'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  children.push(parent)
  const [line] = await once(parent.stdout, 'data')
  await until(() => inspectProcess(parent.pid!, 'linux')?.name === 'sleep', 'the shell to become sleep')
  parent.stdin.end()
  const pid = Number(line)
  await until(() => inspectProcess(pid, 'linux')?.ended !== false, 'the child to end')
  return pid
}

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries === 10_000) throw new Error(`Waited in vain for ${what}.`)
    await setTimeout(2)
  }
}

test('a process that has ended has no environment to read', async () => {
  if (process.platform !== 'linux') return
  assert.is(inspectProcess(await startZombie(), 'linux')?.bare, true)
  assert.is(inspectProcess(process.pid, 'linux')?.bare, undefined)
})

test('a scan of all processes has the known data of each and yields to others', async () => {
  const started = Array.from({ length: 100 }, (_, at) => start('/bin/sleep', { SVC_PROCESS_ID: `home.${at}` }))
  for (const platform of ['linux', 'darwin'] as const) {
    if (!existsSync(platform === 'linux' ? '/proc/self/stat' : '/bin/ps')) continue
    let turns = 0
    const count = setInterval(() => turns++, 0)
    const visited = new Set<number>()
    const found = await walkProcesses(platform, ({ pid }) => visited.add(pid))
    clearInterval(count)
    assert.equal(visited, new Set(found.keys()))
    const again = inspectProcesses(platform)
    for (const [at, pid] of started.entries()) {
      const { homeId, processId, ...info } = found.get(pid)!
      assert.equal(info, again.get(pid))
      assert.equal([homeId, processId], ['', platform === 'linux' ? `home.${at}` : ''])
    }
    if (platform === 'linux') assert.ok(turns > 0)
  }
})

test('an unreaped zombie counts as ended', async () => {
  if (process.platform !== 'linux') return
  assert.is(inspectProcess(await startZombie(), 'linux')?.ended, true)
})

test.run()
