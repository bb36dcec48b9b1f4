import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { waitForTurns } from '../../cli/daemon/manager/wait-for-turns.js'
import { lastingFolders, type ServiceFacts, secretNames } from '../../cli/service/facts.js'
import { launchdPlist } from '../../cli/service/launchd-plist.js'
import { isLingering, lingerCommand } from '../../cli/service/linger.js'
import { socketUnit, systemdUnit } from '../../cli/service/systemd-unit.js'
import { markOf, readService, servicePlaces, serviceProblems } from '../../plugins/desk/daemon/installed-service.js'
import { serviceItems } from '../../plugins/desk/daemon/service-check.js'

const program = fileURLToPath(new URL('../../dist/bin/svc', import.meta.url))
const analyze = '/usr/bin/systemd-analyze'

/** A person with a home and no service manager that answers. */
class Person {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-service-')))
  readonly home: string
  readonly env: Record<string, string>

  constructor(home = '.svc') {
    this.home = join(this.folder, home)
    mkdirSync(this.home, { recursive: true })
    writeFileSync(join(this.home, 'config.json'), '{ "http": { "port": 0 } }')
    // Neither systemctl nor a bus: only Node is on the path.
    const bin = join(this.folder, 'bin')
    mkdirSync(bin)
    this.env = { HOME: this.folder, SVC_HOME: this.home, PATH: bin, ACME_API_KEY: 'canary-3c1f' }
  }

  run(...args: string[]) {
    return spawnSync(process.execPath, [program, 'service', ...args], { encoding: 'utf8', env: this.env })
  }

  get unit(): string {
    return join(this.folder, '.config/systemd/user/svc.service')
  }
}

const test = suite<{ person: Person }>('service')
test.before.each(context => {
  context.person = new Person()
})
test.after.each(({ person }) => rmSync(person.folder, { recursive: true, force: true }))

const factsOf = (home: string, more: Partial<ServiceFacts> = {}): ServiceFacts => ({
  home,
  userHome: '/home/ada',
  user: 'ada',
  platform: 'linux',
  argv: [process.execPath, '--max-semi-space-size=16', program.replace('bin/svc', 'daemon.cjs'), '--service=systemd'],
  path: '/usr/bin:/bin',
  stopWait: 20,
  listen: { socket: join(home, 'daemon.sock'), tcp: '127.0.0.1:2123' },
  ...more,
})

const ODD = [
  '/home/ada/with space',
  `/home/ada/50% $HOME $${'{x}'} "q" \\b 's'`,
  '/home/ada/ünïcode ✓',
  '/home/ada/a;b|c&d#e',
]

test('a unit contains its paths whatever characters they have', () => {
  for (const home of ODD) {
    const facts = factsOf(home, {
      argv: [`${home}/node`, '--x', `${home}/daemon.cjs`, '--service=systemd'],
      path: home,
    })
    for (const text of [
      systemdUnit(facts, { system: false }),
      systemdUnit(facts, { system: true, socket: 'svc.socket' }),
    ]) {
      const read = readService(text, 'systemd-user')
      assert.equal(read, { mark: 'ours', argv: facts.argv, env: { SVC_HOME: home, PATH: home } })
    }
    const plist = readService(launchdPlist('dev.svc.daemon', facts), 'launchd')
    assert.equal(plist, { mark: 'ours', argv: facts.argv, env: { SVC_HOME: home, PATH: home } })
  }
  assert.throws(
    () => systemdUnit(factsOf('/home/a\nExecStartPre=/bin/evil'), { system: false }),
    /is not allowed in a unit file/,
  )
})

test('units pass systemd-analyze, with the documented exposure', ({ person }) => {
  if (!existsSync(analyze))
    return assert.ok(!existsSync('/usr/bin/systemctl'), 'not watched: systemd-analyze is not there')
  const facts = factsOf(person.home, { user: 'nobody' })
  const units = {
    'own.service': systemdUnit(facts, { system: false, socket: 'own.socket' }),
    'own.socket': socketUnit(facts, false),
    'all.service': systemdUnit(facts, { system: true }),
  }
  for (const [name, text] of Object.entries(units)) writeFileSync(join(person.folder, name), text)
  const verify = (name: string, ...how: string[]) =>
    spawnSync(analyze, [...how, 'verify', '--man=no', join(person.folder, name)], { encoding: 'utf8' })
  for (const name of ['own.service', 'own.socket', 'all.service']) {
    const { status, stderr } = verify(name)
    assert.is(status, 0, `${name}: ${stderr}`)
    assert.not.match(stderr, /Unknown (?:key|lvalue|section)|Failed to parse|ignoring/i)
  }
  writeFileSync(join(person.folder, 'bad.service'), `${units['own.service']}\n[Service]\nNoSuchKey=1\n`)
  assert.match(verify('bad.service').stderr, /NoSuchKey/)
  const documented = readFileSync(fileURLToPath(new URL('../../docs/service.md', import.meta.url)), 'utf8')
  for (const [name, of] of [
    ['own.service', 'user'],
    ['all.service', 'system'],
  ] as const) {
    const { stdout } = spawnSync(analyze, ['security', '--offline=true', '--no-pager', join(person.folder, name)], {
      encoding: 'utf8',
    })
    const score = Number(/exposure level for \S+: (\d+\.\d)/.exec(stdout)?.[1])
    const [, most] = new RegExp(`\\| ${of} unit \\| (\\d+\\.\\d) \\|`).exec(documented) ?? []
    // Later versions of systemd look at more.
    assert.ok(Math.abs(score - Number(most)) <= 0.6, `${of}: ${score}, the documentation says ${most}`)
  }
})

test('the property list is parsed by python', ({ person }) => {
  const file = join(person.folder, 'a.plist')
  const facts = factsOf('/home/ada/<a> & "b"')
  writeFileSync(file, launchdPlist('dev.svc.daemon', facts))
  const code = 'import json,plistlib,sys; print(json.dumps(plistlib.load(open(sys.argv[1], "rb"))))'
  const { status, stdout, stderr } = spawnSync('python3', ['-c', code, file], { encoding: 'utf8' })
  assert.is(status, 0, stderr)
  const read = JSON.parse(stdout)
  assert.equal(read.ProgramArguments, facts.argv)
  assert.equal(read.EnvironmentVariables, { SVC_HOME: facts.home, PATH: facts.path })
  assert.equal([read.KeepAlive, read.RunAtLoad, read.ExitTimeOut], [{ SuccessfulExit: false }, true, 60])
})

test('without a reachable manager the unit is written and two commands are printed; a second run changes nothing', ({
  person,
}) => {
  const first = person.run('install')
  assert.is(first.status, 0, first.stderr)
  assert.match(first.stdout, `wrote ${person.unit}`)
  assert.match(first.stdout, '  systemctl --user daemon-reload\n  systemctl --user enable --now svc.service\n')
  const text = readFileSync(person.unit, 'utf8')
  for (const output of [text, first.stdout, first.stderr]) assert.not.match(output, 'canary')
  assert.match(first.stdout, 'Not captured from this shell: ACME_API_KEY')
  assert.match(person.run('install').stdout, `unchanged ${person.unit}`)
  assert.is(readFileSync(person.unit, 'utf8'), text)
})

test('--print changes nothing', ({ person }) => {
  for (const how of [
    ['--print'],
    ['--print', '--system'],
    ['--print', '--socket'],
    ['--print', '--manager', 'launchd'],
  ]) {
    const { status, stdout, stderr } = person.run('install', ...how)
    assert.is(status, 0, stderr)
    assert.match(stdout, 'written by svc service install')
  }
  assert.not.ok(existsSync(join(person.folder, '.config')))
  assert.is(person.run('install', '--manager', 'upstart').status, 2)
})

test('an edited unit is replaced only with --force and backed up; a foreign unit is not removed', ({ person }) => {
  person.run('install')
  const edited = `${readFileSync(person.unit, 'utf8')}# mine\n`
  writeFileSync(person.unit, edited)
  for (const command of ['install', 'uninstall']) {
    const refused = person.run(command)
    assert.is(refused.status, 5)
    assert.match(refused.stderr, /service_edited[\s\S]*--force/)
    assert.is(readFileSync(person.unit, 'utf8'), edited)
  }
  assert.is(person.run('install', '--force').status, 0)
  assert.is(markOf(readFileSync(person.unit, 'utf8')), 'ours')
  assert.is(readFileSync(`${person.unit}.before`, 'utf8'), edited)
  writeFileSync(person.unit, '[Service]\nExecStart=/bin/true\n')
  const foreign = person.run('uninstall', '--force')
  assert.match(foreign.stderr, 'service_foreign')
  assert.ok(existsSync(person.unit))
  assert.match(person.run('install').stderr, 'service_foreign')
})

test('uninstall removes the files of install and keeps the home', ({ person }) => {
  person.run('install', '--socket')
  const removed = person.run('uninstall')
  assert.is(removed.status, 0, removed.stderr)
  assert.not.ok(existsSync(person.unit))
  assert.not.ok(existsSync(person.unit.replace('.service', '.socket')))
  assert.ok(existsSync(join(person.home, 'config.json')))
  assert.match(person.run('uninstall').stdout, 'no service is installed')
  assert.is(person.run('status').status, 4)
})

test('install refuses a configuration with which no daemon would start', ({ person }) => {
  writeFileSync(join(person.home, 'config.json'), '{ "nothing": 1 }')
  const { status, stderr } = person.run('install')
  assert.is(status, 7)
  assert.match(stderr, /unknown key nothing[\s\S]*config_invalid/)
  assert.not.ok(existsSync(person.unit))
})

test('status and doctor report a missing Node, daemon or folder of the path', ({ person }) => {
  person.run('install')
  const gone = join(person.folder, 'gone')
  const text = systemdUnit(
    factsOf(person.home, { argv: [join(gone, 'node'), join(gone, 'daemon.cjs')], path: `/usr/bin:${gone}` }),
    { system: false },
  )
  writeFileSync(person.unit, text)
  const { status, stdout } = person.run('status', '--json')
  assert.is(status, 1)
  const [service] = JSON.parse(stdout).services
  const codes = (service.problems as { code: string }[]).map(({ code }) => code)
  assert.equal(codes.slice(0, 3), ['service_node_missing', 'service_program_missing', 'service_path_gone'])
  assert.match(person.run('status').stdout, `ExecStart points to a missing node: ${gone}/node`)
  const doctor = spawnSync(process.execPath, [program, 'doctor'], { encoding: 'utf8', env: person.env })
  assert.match(doctor.stdout, `ExecStart points to a missing node: ${gone}/node`)
  const owner = { home: person.home, userHome: person.folder, user: 'ada', platform: 'linux' } as const
  assert.equal(
    serviceItems(owner).map(({ code }) => code),
    codes.slice(0, 3),
  )
  const other = readService(text.replaceAll(person.home, '/elsewhere'), 'systemd-user')
  assert.ok(serviceProblems(other, person.home).some(({ code }) => code === 'service_other_home'))
})

test('each home has its own service, and PATH keeps only lasting folders', () => {
  const owner = { userHome: '/home/ada', user: 'ada', platform: 'linux' } as const
  const names = ['/home/ada/.svc', '/srv/a', '/srv/b/a'].flatMap(home =>
    servicePlaces({ ...owner, home }).map(({ file }) => file),
  )
  assert.is(new Set(names).size, 6)
  assert.equal(names.slice(0, 2), ['/home/ada/.config/systemd/user/svc.service', '/etc/systemd/system/svc-ada.service'])
  const env = { PATH: 'relative:/usr/bin::/usr/bin:/tmp:/nowhere:/run/x', XDG_RUNTIME_DIR: '/run/user/1' }
  assert.equal(lastingFolders(env), ['/usr/bin'])
  assert.equal(secretNames({ A_TOKEN: 'x', PATH: '/bin', B_API_KEY: 'y', C_SECRET: '' }), ['A_TOKEN', 'B_API_KEY'])
})

test('linger is read from the file of logind, also for domain users, and set by loginctl', ({ person }) => {
  const folder = join(person.folder, 'linger')
  mkdirSync(folder)
  assert.is(isLingering('ada', folder), false)
  for (const name of ['ada', 'CORP\\\\ada']) writeFileSync(join(folder, name), '')
  assert.equal(
    ['ada', 'CORP\\ada', 'eve'].map(user => isLingering(user, folder)),
    [true, true, false],
  )
  assert.equal(['ada', 'CORP\\ada'].map(lingerCommand), [
    'loginctl enable-linger ada',
    "loginctl enable-linger 'CORP\\ada'",
  ])
  const loginctl = '/usr/bin/loginctl'
  if (existsSync(loginctl)) assert.match(spawnSync(loginctl, ['--help'], { encoding: 'utf8' }).stdout, 'enable-linger')
})

test('a stop is bounded when the daemon does not report its turns', async () => {
  const requests: string[] = []
  const kernel = {
    inject: ({ url }: { url: string }) => {
      requests.push(url)
      return url === '/api/drain' ? Promise.resolve({ status: 200, body: '{}' }) : new Promise(() => {})
    },
  }
  const again = new AbortController()
  const logged: string[] = []
  const log = ({ msg }: { msg: string }) => logged.push(msg)
  await waitForTurns(kernel as never, { extend: () => {} } as never, 20, again.signal, log as never)
  assert.equal(requests, ['/api/drain', '/api/status'])
  assert.match(logged.join(), 'does not say whether turns run')
  const endless = waitForTurns(kernel as never, { extend: () => {} } as never, 3_600_000, again.signal, log as never)
  again.abort()
  await endless
})

test.run()
