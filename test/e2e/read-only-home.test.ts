// proof, timeout: 180s (starts daemons)
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, program } from './installed.js'

/** A mount of its own for one command: root makes it, others need a user namespace. */
const apart = process.geteuid?.() === 0 ? ['-m'] : ['-rUm']
const READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
const mounts = process.platform === 'linux' && spawnSync('unshare', [...apart, 'true']).status === 0

const readOnly = suite<{ at: Installed }>('a read-only home')
const test = mounts ? readOnly : readOnly.skip
readOnly.before.each(async context => {
  context.at = new Installed()
  await startsAndStops(context.at)
})
readOnly.after.each(({ at }) => at.remove())

async function startsAndStops(at: Installed): Promise<void> {
  const daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/, 120_000)
  daemon.child.kill('SIGTERM')
  await daemon.ended
}

function onReadOnly(at: Installed, ...args: string[]) {
  const given = [...apart, 'sh', '-c', READ_ONLY, at.home, process.execPath, program, ...args]
  const { status, stdout, stderr } = spawnSync('unshare', given, { cwd: at.folder, env: at.env, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

test('no daemon starts on a read-only file system, and every refusal names the reason', ({ at }) => {
  for (const args of [
    ['daemon', 'start'],
    ['daemon', 'start', '--foreground'],
    ['config', 'set', 'log.level', 'debug'],
  ])
    for (const note of ['there', 'removed']) {
      if (note === 'there') at.writeHome('stop-asked.json', '{}')
      else rmSync(join(at.home, 'stop-asked.json'), { force: true })
      const { code, stderr } = onReadOnly(at, ...args)
      const output = `${args.join(' ')}: ${code} ${stderr}`
      assert.is.not(code, 0, output)
      assert.match(stderr, /read-only/, output)
      assert.not.match(stderr, /code: internal/, output)
      assert.match(stderr, /next: mount it for writing/, output)
      if (note === 'removed') assert.not.match(stderr, /stop-asked/, output)
    }
})

test('read commands work on a read-only file system, and the doctor names it', async ({ at }) => {
  const doctor = onReadOnly(at, 'doctor', '--json')
  const home = JSON.parse(doctor.stdout).items.find(({ id }: { id: string }) => id === 'home.path')
  assert.equal([home.code, home.severity], ['home_unwritable', 'error'])
  assert.match(home.message, /read-only file system; mount it writable/)
  const { code, stderr } = onReadOnly(at, 'job', 'list')
  assert.is(code, 3, stderr)
  assert.match(stderr, /read-only\n.*next: mount it for writing/s)
  const verified = onReadOnly(at, 'db', 'verify')
  assert.is(verified.code, 0, verified.stderr)
  assert.match(verified.stdout, /0 damaged/)
  await startsAndStops(at)
})

readOnly.run()
