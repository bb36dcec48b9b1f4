import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
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

test('a process that has ended has no environment to read', async () => {
  if (process.platform !== 'linux') return
  const parent = spawn('/bin/sh', ['-c', 'true & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  children.push(parent)
  const [line] = await once(parent.stdout, 'data')
  while (!inspectProcess(Number(line), 'linux')?.ended) await setImmediate()
  assert.is(inspectProcess(Number(line), 'linux')?.bare, true)
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
  // The shell has become another program, which never waits for this child, long before it ends.
  const child = spawn('/bin/sh', ['-c', 'sleep 0.5 & echo $!; exec sleep 1000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  const [chunk] = await once(child.stdout, 'data')
  const pid = Number(chunk)
  while (inspectProcess(pid, 'linux')?.ended === false) await new Promise(resolve => setTimeout(resolve, 10))
  assert.is(inspectProcess(pid, 'linux')?.ended, true)
})

test.run()
