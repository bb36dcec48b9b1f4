// proof, timeout: 120s (starts daemons)
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, program } from './installed.js'

const test = suite<{ at: Installed }>('odd homes')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

test('no command on a copy of a running home touches the daemon of the original', async ({ at }) => {
  await at.svc('daemon', 'start')
  const { pid } = at.discovery
  const copy = join(at.folder, 'copy')
  // As `cp -a` of a running home; the sockets are left out because they cannot be copied.
  cpSync(at.home, copy, { recursive: true, filter: source => !source.endsWith('.sock') })
  const onCopy = (...args: string[]) => at.run(args, undefined, { SVC_HOME: copy })
  assert.match((await onCopy('daemon', 'stop')).stdout, /^no daemon is running/)
  const started = await onCopy('daemon', 'start')
  assert.is(started.code, 1)
  assert.match(
    started.stderr,
    /^error: the daemon cannot start: .*copy is a copy of .*reason: home_copied.*next: svc backup create/s,
  )
  assert.match((await onCopy('daemon', 'stop')).stdout, /^no daemon is running/)
  assert.is((await at.json<{ daemon: { pid: number } }>('status')).daemon.pid, pid)
})

test('a home that is a file and a removed current folder are plain errors', async ({ at }) => {
  const file = join(at.folder, 'file')
  writeFileSync(file, '')
  for (const args of [['status'], ['daemon', 'start'], ['daemon', 'stop'], ['config', 'check']]) {
    const { code, stderr } = await at.run(args, undefined, { SVC_HOME: file })
    assert.is(code, 1)
    assert.match(stderr, /^error: the home .*file is not a folder\n/)
  }
  const gone = join(at.folder, 'gone')
  const script = 'rmdir "$PWD" && "$0" "$@"'
  const inGone = (...args: readonly string[]) => {
    mkdirSync(gone)
    const options = { cwd: gone, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script, process.execPath, program, ...args], options)
    rmSync(gone, { recursive: true, force: true })
    return { status, stdout, stderr }
  }
  const refused = inGone('status')
  assert.is(refused.status, 1)
  assert.match(refused.stderr, /^error: the current folder does not exist any more\n/)
  assert.match(inGone('--version').stdout, /^\d+\.\d+\.\d+\n$/)
  assert.match(inGone('session', '--help').stdout, 'svc session <command>')
})

test.run()
