// proof, timeout: 240s: a systemd of its own, of the machine and of a user, with agents in sandboxes under the directives of its unit
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { scriptedModel } from '../fixtures/scripted-model.js'
import { Systemd, whyNoSystemd } from '../harness/systemd.js'
import { Installed, until } from './installed.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = join(root, 'dist/bin/svc')
const USER = 'nobody'
const PATH = '/usr/local/bin:/usr/bin:/bin'
const PATIENCE_MS = 60_000

const missing = whyNoSystemd()
if (missing !== undefined) console.log(`not watched: a real systemd (${missing})`)
const watched = missing === undefined ? test : test.skip

let at: Installed
let systemd: Systemd
let user: string

test.before(async () => {
  if (missing !== undefined) return
  at = new Installed()
  user = join(at.folder, 'person')
  mkdirSync(join(user, '.svc'), { recursive: true })
  writeFileSync(join(user, '.svc/config.json'), '{ "http": { "port": 0 } }')
  chmodSync(at.folder, 0o755)
  execFileSync('chown', ['-R', `${USER}:nogroup`, user])
  systemd = await Systemd.boot(join(at.folder, 'systemd'))
  const uid = execFileSync('id', ['-u', USER], { encoding: 'utf8' }).trim()
  const runtime = `/run/user/${uid}`
  const units = `${user}/.config/systemd/user:${systemd.units}`
  systemd.unit(
    `user@${uid}.service`,
    `[Unit]
DefaultDependencies=no
[Service]
Type=notify
User=${USER}
Environment=XDG_RUNTIME_DIR=${runtime} SYSTEMD_UNIT_PATH=${units} HOME=${user}
ExecStartPre=+/bin/sh -c 'mkdir -p ${runtime}; chown ${USER}:nogroup ${runtime}; chmod 700 ${runtime}'
ExecStart=/lib/systemd/systemd --user --log-target=console --unit=test.target
Delegate=yes
KillMode=mixed
`,
  )
  systemd.systemctl('daemon-reload')
  systemd.systemctl('start', `user@${uid}.service`)
  personal = { XDG_RUNTIME_DIR: runtime, PATH, HOME: user, USER, SECRET_TOKEN: 'canary-of-the-shell' }
})
test.after(async () => {
  if (missing !== undefined) return
  await systemd.end()
  await at.remove()
})

/** The environment of the person, and a program that they run. */
let personal: Readonly<Record<string, string>>
const asUser = (argv: readonly string[]) => systemd.run(argv, personal, USER)

function svc(...args: string[]): string {
  const { status, stdout, stderr } = asUser([process.execPath, program, ...args])
  if (status !== 0)
    throw new Error(`svc ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}${systemd.log.slice(-2000)}`)
  return stdout
}

const status = () =>
  JSON.parse(asUser([process.execPath, program, 'service', 'status', '--json']).stdout).services[0] as {
    state: string
    pid: number
    restarts: number
    problems: { code: string }[]
  }
const becomes = (what: string, is: () => boolean) =>
  until(
    () => is() || undefined,
    PATIENCE_MS,
    () => `${what}\n${systemd.log.slice(-2000)}`,
  )

watched(
  'svc service install: the daemon runs, is killed and comes back, restarts itself, stops for good, starts by itself',
  async () => {
    const installed = JSON.parse(svc('service', 'install', '--json'))
    assert.equal([installed.status, installed.service, installed.commands], ['started', 'svc.service', []])
    const [file] = installed.files
    assert.not.match(readFileSync(file, 'utf8'), 'canary')
    const first = status()
    assert.is(first.state, 'active (running)')
    assert.equal(
      first.problems.filter(({ code }) => code !== 'service_no_linger'),
      [],
    )
    systemd.run(['kill', '-9', String(first.pid)], { PATH })
    await becomes('it comes back', () => status().pid !== first.pid && status().state === 'active (running)')
    const second = status()
    assert.match(svc('daemon', 'restart'), `daemon restarted (pid ${second.pid}, now `)
    const third = status()
    assert.is(third.state, 'active (running)')
    assert.is.not(third.pid, second.pid)
    assert.match(svc('daemon', 'stop'), `daemon stopped (pid ${third.pid})`)
    await becomes('it stays stopped', () => status().state === 'inactive (dead)')
    assert.match(svc('daemon', 'start'), 'daemon started')
    assert.is(status().state, 'active (running)', 'by the manager, not beside it')
    assert.match(svc('service', 'install'), 'unchanged')
  },
)

watched('a daemon that does not move is ended by the watchdog of systemd and started again', async () => {
  const folder = join(user, '.config/systemd/user/svc.service.d')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'fast.conf'), '[Service]\nWatchdogSec=2\n')
  execFileSync('chown', ['-R', USER, folder])
  asUser(['systemctl', '--user', 'daemon-reload'])
  asUser(['systemctl', '--user', 'restart', 'svc.service'])
  const { pid } = status()
  systemd.run(['kill', '-STOP', String(pid)], { PATH })
  await becomes('another one', () => status().pid !== pid && status().state === 'active (running)')
  assert.ok(status().restarts > 0)
  writeFileSync(join(folder, 'fast.conf'), '')
  asUser(['systemctl', '--user', 'daemon-reload'])
})

watched('what no start can help is not started again, and the status says so', async () => {
  svc('daemon', 'stop')
  const config = join(user, '.svc/config.json')
  writeFileSync(config, '{ "nothing": 1 }')
  const { status: code } = asUser(['systemctl', '--user', 'start', 'svc.service'])
  assert.is.not(code, 0)
  assert.match(status().state, 'failed')
  assert.is(status().restarts, 0)
  assert.ok(status().problems.some(({ code }) => code === 'service_failed'))
  writeFileSync(config, '{ "http": { "port": 0 } }')
  assert.match(svc('daemon', 'start'), 'daemon started')
})

/** A session in a sandbox whose agent runs a shell command, as the daemon of this home starts it. */
async function sandboxed(home: string): Promise<string> {
  const model = await scriptedModel([{ id: 'tiny' }])
  try {
    const as = async (...args: string[]) => {
      const ran = await systemd.runLater([process.execPath, program, ...args], { ...personal, SVC_HOME: home }, USER)
      assert.is(ran.status, 0, `svc ${args.join(' ')}: ${ran.stdout}${ran.stderr}`)
    }
    await as('init', '--yes', '--endpoint', model.url)
    await as('daemon', 'restart')
    const work = join(user, 'work')
    mkdirSync(work, { recursive: true })
    execFileSync('chown', [USER, work])
    const command =
      'echo "shell works in $PWD" > made.txt; ls ~/.svc/vault.key 2>&1; cat made.txt; git init -q . && echo git works'
    model.script([{ calls: [{ name: 'run', input: { command } }] }, { text: 'ended' }])
    await as('run', 'Use the shell', '--permissions', 'approve-all', '--sandbox', 'default', '--workspace', work)
    return model.results().join('\n')
  } finally {
    await model.close()
  }
}

watched('under the unit of a user an agent runs in its sandbox, and its shell works', async () => {
  const output = await sandboxed(join(user, '.svc'))
  assert.match(output, 'shell works in')
  assert.match(output, 'git works')
})

watched('under the unit of the machine an agent runs in its sandbox, and its shell works', async () => {
  svc('daemon', 'stop')
  const home = join(user, '.svc')
  const print = ['service', 'install', '--print', '--system', '--user', USER]
  const { stdout } = spawnSync(process.execPath, [program, ...print], {
    encoding: 'utf8',
    env: { ...at.env, HOME: user, SVC_HOME: home, PATH },
  })
  // The user of the test has no home that it could begin in.
  systemd.unit('svc.service', stdout.replace('WorkingDirectory=~', 'WorkingDirectory=/'))
  systemd.systemctl('daemon-reload')
  systemd.systemctl('start', 'svc.service')
  assert.is(systemd.property('svc.service', 'ActiveState'), 'active')
  const output = await sandboxed(home)
  assert.match(output, 'shell works in')
  assert.match(output, 'git works')
  systemd.systemctl('stop', 'svc.service')
  assert.is(systemd.property('svc.service', 'Result'), 'success')
})

watched('svc service uninstall takes the unit and leaves the home', async () => {
  svc('service', 'uninstall')
  assert.is(asUser([process.execPath, program, 'service', 'status']).status, 4)
  assert.match(readFileSync(join(user, '.svc/config.json'), 'utf8'), 'port')
})

test('without systemd or namespace rights the reason is reported', () => {
  const isThere = existsSync('/lib/systemd/systemd')
  assert.is(missing === 'systemd is not installed', !isThere && process.platform === 'linux')
})

test.run()
