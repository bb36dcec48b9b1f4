import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  environmentHas,
  inspectProcess,
  inspectProcesses,
  processesByEnvironment,
} from '../../../kernel/spawn/inspect.js'

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

test('both ways to ask agree on a process, whatever its name', () => {
  const awkward = join(scratch, 'a) Z 1 (b')
  symlinkSync('/bin/sleep', awkward)
  const pid = start(awkward)
  for (const platform of ['linux', 'darwin'] as const) {
    if (!existsSync(platform === 'linux' ? '/proc/self/stat' : '/bin/ps')) continue
    const one = inspectProcess(pid, platform)
    assert.equal(
      { ...one, startTime: '', name: '' },
      { pid, parent: process.pid, group: pid, startTime: '', name: '', ended: false },
    )
    assert.ok(one!.startTime.length > 0)
    assert.match(one!.name, 'a) Z 1 (b')
    assert.equal(inspectProcesses(platform).get(pid), one)
    assert.is(inspectProcess(2 ** 30, platform), undefined)
    for (const no of [0, -1, 1.5, Number.NaN]) assert.is(inspectProcess(no, platform), undefined)
  }
})

test('an entry of the environment is found whole or not at all', () => {
  if (process.platform !== 'linux') return
  const pid = start('/bin/sleep', { FIRST: 'x', SVC_HOME_ID: 'home-1', LAST: 'SVC_HOME_ID=home-2' })
  const has = (entry: string) => environmentHas(pid, entry, 'linux')
  assert.equal(['FIRST=x', 'SVC_HOME_ID=home-1', 'LAST=SVC_HOME_ID=home-2'].map(has), [true, true, true])
  assert.equal(['SVC_HOME_ID=home-2', 'SVC_HOME_ID=home', 'HOME_ID=home-1'].map(has), [false, false, false])
  assert.is(environmentHas(2 ** 30, 'FIRST=x', 'linux'), false)
  assert.is(environmentHas(pid, 'FIRST=x', 'darwin'), false)
})

test('processes are found by what their environment gives a name', () => {
  if (process.platform !== 'linux') return
  const of = (value: string) => start('/bin/sleep', { SVC_LOOKED_FOR: value, OTHER: 'SVC_LOOKED_FOR=three' })
  const [one, two, again] = [of('one'), of('two'), of('one')]
  const found = processesByEnvironment('SVC_LOOKED_FOR', 'linux')
  assert.equal(new Set(found.get('one')), new Set([one, again]))
  assert.equal([found.get('two'), found.get('three')], [[two], undefined])
  assert.is(processesByEnvironment('LOOKED_FOR', 'linux').size, 0)
  assert.is(processesByEnvironment('SVC_LOOKED_FOR', 'darwin').size, 0)
})

test('a process that has ended and was not waited for is ended', async () => {
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
