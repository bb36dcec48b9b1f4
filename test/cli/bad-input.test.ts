import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { exampleOf } from '../../cli/commands/example.js'
import type { Entry } from '../../cli/commands/find-command.js'
import { exitCodes } from '../../cli/fault.js'
import { textWidth } from '../../cli/show/text.js'
import { inTree } from '../../plugins/index.js'
import { label } from '../fixtures/cases.js'
import { boot, type TestKernel } from '../harness/kernel.js'
import { FakeDaemon, type Ran, type RunOptions, runCli } from './fake-daemon.js'
import { data, dist, entries, wordsOf } from './tree.js'

// Every command, called wrongly in every way that applies to it, against the plugins of a daemon: each answer fits one
// screen, says what is wrong and what to do, and has the exit status of that kind of mistake.

const test = suite<{ daemon: FakeDaemon; kernel: TestKernel; folder: string }>('bad input')
test.before(async context => {
  context.folder = mkdtempSync(join(tmpdir(), 'svc-bad-'))
  context.daemon = await FakeDaemon.start()
  context.daemon.version = data.version
  const { home } = context.daemon
  context.kernel = await boot({ home, plugins: inTree, env: { PATH: '/nowhere', SVC_HOME: home }, checkReplies: false })
  context.daemon.otherwise = async (response, { method, url, body }) => {
    const request = { method, url, ...(body !== undefined && { body }) }
    const reply = await context.kernel.kernel.inject(request)
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body)
  }
})
test.after(async ({ daemon, kernel, folder }) => {
  await kernel.close()
  await daemon.remove()
  rmSync(folder, { recursive: true })
})

/** Rows and columns of the smallest terminal that is thought of. */
const screen = { rows: 24, columns: 80 }
/** Commands that are about the machine of the caller, and those that go on until Ctrl-C. */
const apart =
  /^(?:init|daemon |logs|completion|version|run$|auth |config (?:path|edit|validate)|vault put|extension (?:init|dev|test|build|validate)|session attach)/
const withDaemon = entries.filter(({ path, kind }) => kind !== 'local' && !apart.test(path))

type Context = { daemon: FakeDaemon; folder: string }
const run = ({ daemon, folder }: Context, argv: readonly string[], more: RunOptions = {}) =>
  runCli(daemon.home, argv, { data, root: dist, cwd: folder, signal: AbortSignal.timeout(20_000), ...more })

const requiredOf = (entry: Entry) =>
  entry.kind === 'route'
    ? entry.args.filter(({ required }) => required)
    : entry.args.filter(({ optional }) => !optional)

/** What is wrong with an answer to a mistake; undefined when nothing is. */
function wrongWith(
  argv: readonly string[],
  { code, stdout, stderr }: Ran,
  exits: readonly number[],
): string | undefined {
  const output = `svc ${argv.join(' ')} (exit ${code}):\n${stdout}${stderr}`
  if (!exits.includes(code)) return `the exit status is not ${exits.join(' or ')}: ${output}`
  const lines = stderr.trimEnd().split('\n')
  const rows = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / screen.columns)), 0)
  if (rows > screen.rows) return `more than a screen: ${output}`
  if (!/^error: \S/.test(stderr)) return `no error is said: ${output}`
  if (!/\n {2}code: (?:[a-z][a-z0-9]*(?:_[a-z0-9]+)*|AUTONOMY(?:_[A-Z]+)+)\n/.test(stderr)) return `no code: ${output}`
  if (!/\n {2}next: \S/.test(stderr)) return `nothing says what to do: ${output}`
  return /\bat .*:\d+:\d+|undefined|\[object/.test(stderr) ? `it is not for people: ${output}` : undefined
}

const example = (entry: Entry) => wordsOf(exampleOf(entry)).slice(1)

/** One test of a mistake for each command it can be made in; at least `least` of them. */
function everywhere(
  name: string,
  mistake: (entry: Entry) => readonly string[] | undefined,
  exits: readonly number[],
  { least, among = withDaemon, at }: { least: number; among?: readonly Entry[]; at?: (context: Context) => Context },
): void {
  const mistakes = among.flatMap(entry => [mistake(entry) ?? []].filter(argv => argv.length > 0))
  test(`${name}: at least ${least} commands are tried`, () => assert.ok(mistakes.length >= least))
  for (const argv of mistakes)
    test(`${name}: svc ${label(argv.join(' '))}`, async context =>
      assert.is(wrongWith(argv, await run(at?.(context) ?? context, argv), exits), undefined))
}

// What is wrong without a daemon may be said first.
const needsFile = /--file|^layout validate|^extension (?:install|publish)/
const ANSWERED_OFFLINE = [
  ...['doctor', 'extension disable', 'db size', 'db verify', 'config check', 'config set', 'config unset'],
  'support bundle',
]
everywhere(
  'a command without a daemon exits with 3 and names the next step',
  entry => (needsFile.test(example(entry).join(' ')) ? undefined : example(entry)),
  [exitCodes.noDaemon],
  {
    least: 80,
    among: withDaemon.filter(({ path }) => !ANSWERED_OFFLINE.includes(path)),
    at: ({ folder }) => ({ daemon: { home: join(folder, 'no-daemon') } as FakeDaemon, folder }),
  },
)

everywhere(
  'a missing argument exits with 2',
  entry => (requiredOf(entry).length > 0 ? entry.path.split(' ') : undefined),
  [exitCodes.usage],
  { least: 60, among: entries },
)

for (const more of ['surplus', '--nonsense'])
  everywhere('a surplus word exits with 2', entry => [...example(entry), more], [exitCodes.usage], {
    least: 80,
    among: entries.filter(entry => requiredOf(entry).length === entry.args.length),
  })

const creates = /(?:create|put|add|install|open|drain|preview|validate|search)$/
// Who asks is judged before what is asked for.
const ofAgents =
  /^(?:spawn|me notify|ch (?:send|reply|recv)|task (?:begin|heartbeat|complete|fail|release|review start))$/
everywhere(
  'a missing or unusable thing exits with 4 or gives the reason',
  entry => {
    const args = requiredOf(entry)
    if (
      args.length === 0 ||
      ofAgents.test(entry.path) ||
      creates.test(entry.path) ||
      entry.path === 'extension install'
    )
      return undefined
    const options = example(entry).slice(entry.path.split(' ').length + args.length)
    return [...entry.path.split(' '), ...args.map(() => 'nothing-like-it'), ...options]
  },
  [exitCodes.notFound, exitCodes.usage, exitCodes.invalid, exitCodes.failed],
  { least: 50 },
)

everywhere(
  'text for a number exits with 2',
  entry => {
    const option = entry.options.find(({ type }) => type === 'integer')
    if (option === undefined) return undefined
    return [...example(entry), `--${'option' in option ? option.option : option.name}`, 'ten']
  },
  [exitCodes.usage],
  { least: 10, among: entries.filter(({ path }) => !apart.test(path)) },
)

everywhere(
  'a value outside an enumeration exits with 2',
  entry => {
    const option = entry.options.find(({ values }) => values !== undefined)
    if (option === undefined) return undefined
    return [...example(entry), `--${'option' in option ? option.option : option.name}`, 'nonsense']
  },
  [exitCodes.usage],
  { least: 4 },
)

everywhere(
  'invalid JSON exits with 2',
  entry => (entry.kind === 'route' && entry.body !== 'none' ? [...example(entry), '--data', '{"a":'] : undefined),
  [exitCodes.usage],
  { least: 5 },
)

test('a daemon of another version serves the command, and a warning names the command that aligns them', async context => {
  context.daemon.version = '0.0.1'
  try {
    for (const argv of [['status'], ['session', 'list'], ['job', 'list'], ['agent', 'list'], ['desktop', 'list']]) {
      const { stderr } = await run(context, argv)
      assert.match(stderr, /note: the daemon is version 0\.0\.1,.*svc daemon/, argv.join(' '))
    }
  } finally {
    context.daemon.version = data.version
  }
})

/** Lists and overviews of every group. */
const looks = [
  ...['status', 'doctor', 'inbox', 'plugin list', 'provider list', 'workspace list', 'agent list', 'session list'],
  ...['job list', 'automation runs list', 'extension list', 'bundle list', 'resource list', 'db status'],
]

for (const look of looks)
  test(`no line is longer than a terminal of 40 columns: svc ${look}`, async context => {
    const { code, stdout } = await run(context, look.split(' '), { tty: true, columns: 40 })
    assert.is(code, 0)
    // A value that has to be read whole may be longer than the terminal.
    const plain = stdout.replace(new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g'), '')
    const [header = ''] = plain.split('\n')
    assert.ok(textWidth(header) <= 40 || !/^[A-Z ]+$/.test(header), header)
  })

for (const look of looks)
  test(`output without colours or a terminal, and with NO_COLOR, has no escape sequence: svc ${look}`, async context => {
    for (const more of [{}, { tty: true, env: { NO_COLOR: '1' } }, { tty: true, env: { TERM: 'dumb' } }]) {
      const { stdout, stderr } = await run(context, look.split(' '), more)
      assert.not.ok((stdout + stderr).includes(String.fromCharCode(27)))
    }
  })

test('a closed pipe and a locale without UTF-8 are no error', ({ daemon, folder }) => {
  const svc = `'${process.execPath}' '${join(dist, 'bin/svc')}'`
  for (const look of ['--help', 'doctor', 'provider list', 'resource list']) {
    const shell = (line: string, env: Record<string, string> = {}) =>
      spawnSync('bash', ['--norc', '-c', `set -o pipefail; ${line}`], {
        cwd: folder,
        env: { PATH: process.env.PATH, SVC_HOME: `${daemon.home}-none`, ...env },
        encoding: 'utf8',
      })
    const cut = shell(`${svc} ${look} 2>&1 | head -n 1`)
    assert.ok([0, 3].includes(cut.status ?? -1), `${look}: ${cut.status} ${cut.stdout}${cut.stderr}`)
    assert.is(cut.stderr, '')
    const plain = shell(`${svc} ${look} 2>&1`, { LANG: 'C', LC_ALL: 'C' })
    assert.not.match(plain.stdout, /\P{ASCII}/u, `${look} in a locale without UTF-8`)
  }
})

test.run()
