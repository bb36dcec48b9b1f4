import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data } from './tree.js'

// `svc provider auth login`, with a login program that writes down how it was started.
const test = suite<{ daemon: FakeDaemon; bin: string }>('provider auth login')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
  context.bin = mkdtempSync(join(tmpdir(), 'svc-login-'))
  const script = `#!/bin/sh\nprintf '%s|%s' "$*" "$HOME" > ${context.bin}/seen\n[ "$1" = login ]\n`
  writeFileSync(join(context.bin, 'acme'), script, { mode: 0o755 })
})
test.after.each(({ daemon, bin }) => {
  rmSync(bin, { recursive: true })
  return daemon.remove()
})

const provider = (auth: object) => ({
  name: 'acme',
  default: false,
  auth_status: { env_policy: 'filtered', home_policy: 'operator', mode: 'native_cli', state: 'unchecked', ...auth },
})
const logIn = ({ home }: FakeDaemon, bin: string, typed: readonly string[] | undefined, more: readonly string[] = []) =>
  runCli(home, ['provider', 'auth', 'login', 'acme', ...more], {
    data,
    env: { PATH: `${bin}:/usr/bin:/bin`, HOME: '/home/of-mine' },
    ...(typed && { typed }),
  })

test('a login runs in the terminal, and the agent is probed afterwards', async ({ daemon, bin }) => {
  daemon.reply('GET /api/providers/acme', 200, provider({ login_command: 'acme login', status_command: 'acme status' }))
  const after = provider({ state: 'ready' }).auth_status
  daemon.reply('POST /api/providers/acme/auth/probe', 200, { provider: 'acme', auth_status: after })
  const { code, stdout } = await logIn(daemon, bin, [])
  assert.is(code, 0, stdout)
  assert.match(stdout, /acme: logged in/)
  assert.is(readFileSync(join(bin, 'seen'), 'utf8'), 'login|/home/of-mine')
})

test('a login uses the isolated home of its processes', async ({ daemon, bin }) => {
  const auth = { login_command: 'acme login', home_policy: 'isolated' }
  daemon.reply('GET /api/providers/acme', 200, provider(auth))
  const { code, stdout } = await logIn(daemon, bin, [])
  assert.is(code, 0, stdout)
  assert.match(stdout, /its login status is unknown/)
  assert.is(readFileSync(join(bin, 'seen'), 'utf8'), `login|${join(daemon.home, 'providers', 'acme')}`)
})

/** An agent that says how one logs in, and creates a file when somebody did. */
const speaksAcp = (bin: string) => {
  const fixture = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))
  return `${process.execPath} ${fixture} --login-file=${bin}/logged-in`
}
const loggedIn = (bin: string) => readFileSync(join(bin, 'logged-in'), 'utf8')

test('a provider without a login command offers the methods of the agent, chosen by prompt or name', async ({
  daemon,
  bin,
}) => {
  daemon.reply('GET /api/providers/acme', 200, { ...provider({}), command: speaksAcp(bin) })
  const chosen = await logIn(daemon, bin, ['1'])
  assert.is(chosen.code, 0, chosen.stderr)
  assert.match(chosen.stdout, /How do you want to log in\?[\s\S]*1 {2}In the browser[\s\S]*2 {2}Here/)
  assert.is(loggedIn(bin), 'browser')
  const named = await logIn(daemon, bin, [], ['--method', 'here'])
  assert.is(named.code, 0, named.stderr)
  assert.is(loggedIn(bin), 'browserhere')
  const unknown = await logIn(daemon, bin, [], ['--method', 'other'])
  assert.match(unknown.stderr, /available: browser, here[\s\S]*provider_login_unavailable/, JSON.stringify(unknown))
})

test('an agent without a login, one that refuses it, and an invalid agent are reported as such', async ({
  daemon,
  bin,
}) => {
  const offers = (methods: object[]) =>
    `require('readline').createInterface({input:process.stdin}).on('line',l=>{const{id,method}=JSON.parse(l);console.log(JSON.stringify(method==='initialize'?{id,result:{authMethods:${JSON.stringify(methods)}}}:{id,error:{message:'not today'}}))})`
  for (const [script, output] of [
    [offers([]), /offers no way to log in/],
    [offers([{ id: 'a', name: 'A' }]), /acme: authenticate: not today/],
    ['process.exit(3)', /its program ended \(3\)/],
  ] as const) {
    writeFileSync(join(bin, 'agent.cjs'), script)
    daemon.reply('GET /api/providers/acme', 200, { ...provider({}), command: `${process.execPath} ${bin}/agent.cjs` })
    const { code, stderr } = await logIn(daemon, bin, [])
    assert.is.not(code, 0)
    assert.match(stderr, output)
  }
})

test('a missing terminal, command or program and a failed login each name the next command', async ({
  daemon,
  bin,
}) => {
  const fails = async (auth: object, output: RegExp, onTerminal = true) => {
    daemon.reply('GET /api/providers/acme', 200, provider(auth))
    const { code, stderr } = await logIn(daemon, bin, onTerminal ? [] : undefined)
    assert.is.not(code, 0)
    assert.match(stderr, output)
  }
  await fails({ login_command: 'acme login' }, /terminal_missing[\s\S]*acme login/, false)
  await fails({}, /provider_login_unavailable[\s\S]*svc vault put/)
  await fails({ login_command: 'absent login' }, /provider_cli_missing[\s\S]*svc provider list/)
  await fails({ login_command: 'acme refuse' }, /acme refuse ended with 1/)
})

for (const [what, program, why] of [
  ['one endless line', "tr '\\0' x < /dev/zero", /a line of more than 1048576 bytes/],
  ['lines without a message', 'yes', /more than 1000 lines in a row that are not messages/],
] as const)
  test(`an agent that prints ${what} is killed, and the limit is named`, async ({ daemon, bin }) => {
    writeFileSync(join(bin, 'floods'), `#!/bin/sh\nexec ${program}\n`, { mode: 0o755 })
    daemon.reply('GET /api/providers/acme', 200, { ...provider({}), command: `${bin}/floods` })
    const { code, stderr } = await logIn(daemon, bin, ['1'])
    assert.is(code, 1)
    assert.match(stderr, 'provider_login_failed')
    assert.match(stderr, why)
  })

test.run()
