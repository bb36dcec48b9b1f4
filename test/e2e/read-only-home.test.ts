// proof, timeout: 180s (starts daemons)
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
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

const MOUNTED = 'mount --bind "$SVC_HOME" "$SVC_HOME" && mount -o remount,ro,bind "$SVC_HOME"'

/** Runs a script with mounts of its own; `$SVC` runs the program. */
function inMount(at: Installed, script: string) {
  const env = { ...at.env, SVC: `${process.execPath} ${program}` }
  return spawnSync('unshare', [...apart, 'sh', '-c', script], { cwd: at.folder, env, encoding: 'utf8' })
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

test('a home that becomes read-only while its daemon runs: requests name the file, doctor names the home', ({ at }) => {
  const { stdout } = inMount(
    at,
    `$SVC daemon start && ${MOUNTED} && { $SVC config set log.level debug; $SVC doctor --json; $SVC job list; $SVC daemon stop; } 2>&1`,
  )
  assert.match(stdout, /config\.json.* cannot be written: EROFS/)
  assert.match(stdout, 'code: file_unwritable\n  next: svc doctor')
  assert.match(stdout, /"home_unwritable".*cannot be written \(EROFS\)/s)
  assert.match(stdout, 'No jobs')
  assert.match(stdout, 'daemon stopped')
})

test('a config.json that is mounted as a file is not replaced, and the refusal says so', ({ at }) => {
  const mounted = 'mount --bind "$SVC_HOME/config.json" "$SVC_HOME/config.json"'
  const { stdout } = inMount(
    at,
    `${mounted} && { $SVC config set log.level debug; ls -A "$SVC_HOME"; $SVC daemon start; $SVC config set log.level debug; $SVC daemon stop; } 2>&1`,
  )
  assert.match(stdout, /config\.json cannot be replaced: EBUSY.*code: home_unwritable.*next: mount its folder/s)
  assert.match(stdout, /config\.json cannot be written: EBUSY.*code: file_unwritable/s)
  assert.not.match(stdout, '.tmp\n')
})

test('a backup of a home on a full disk is made on another one without the daemon', ({ at }) => {
  const elsewhere = join(at.folder, 'elsewhere')
  mkdirSync(elsewhere)
  const fill = 'dd if=/dev/zero of="$SVC_HOME/filler" bs=4k 2>/dev/null'
  const { stdout } = inMount(
    at,
    `mount -t tmpfs -o size=12m none "$SVC_HOME" && { $SVC config set http.port 0; $SVC daemon start; $SVC daemon stop; ${fill}
    $SVC backup create; $SVC config set log.level debug; $SVC backup create --to ${elsewhere}/x.tar; } 2>&1`,
  )
  assert.match(stdout, /the backup was not made: .*code: disk_full.*next: svc backup create --to/s)
  assert.match(stdout, /the disk of .* is full: .*code: disk_full/s)
  assert.match(stdout, `to ${elsewhere}/x.tar`)
  assert.equal(readdirSync(elsewhere), ['x.tar'])
  const verified = spawnSync(process.execPath, [program, 'backup', 'verify', `${elsewhere}/x.tar`], { env: at.env })
  assert.is(verified.status, 0, String(verified.stderr))
})

test('a read-only home is backed up to another folder, without a daemon', ({ at }) => {
  const elsewhere = join(at.folder, 'elsewhere')
  mkdirSync(elsewhere)
  const { stdout } = inMount(
    at,
    `${MOUNTED} && { $SVC backup create; echo "to a file"; $SVC backup create --to ${elsewhere}/x.tar; $SVC backup create --to ${elsewhere}; } 2>&1`,
  )
  const [refused = '', made = ''] = stdout.split('to a file')
  assert.match(
    refused,
    /the backup was not made: .* cannot be written.*code: home_unwritable.*next: svc backup create --to/s,
  )
  assert.match(made, `to ${elsewhere}/x.tar`)
  const files = readdirSync(elsewhere).flatMap(name => (name.endsWith('.tar') ? join(elsewhere, name) : []))
  assert.is(files.length, 2)
  for (const file of files) {
    const verified = spawnSync(process.execPath, [program, 'backup', 'verify', file], { env: at.env })
    assert.is(verified.status, 0, String(verified.stderr))
  }
})

test('a read-only view of a home is not backed up while a daemon that it cannot reach writes to it', ({ at }) => {
  const view = join(at.folder, 'view')
  mkdirSync(view)
  const { stdout } = inMount(
    at,
    `$SVC daemon start && mount --bind "$SVC_HOME" ${view} && mount -o remount,ro,bind ${view} && mount --bind /dev/null ${view}/daemon.json && mount --bind /dev/null ${view}/daemon.sock && {
    SVC_HOME=${view} $SVC backup create --to ${at.folder}/x.tar; $SVC daemon stop; SVC_HOME=${view} $SVC backup create --to ${at.folder}/x.tar; } 2>&1`,
  )
  assert.match(stdout, /code: daemon_unreachable.*daemon stopped.*backed up/s)
})

readOnly.run()
