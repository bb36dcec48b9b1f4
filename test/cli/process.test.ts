import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeCommandLines } from '../../cli/commands/command-lines.js'
import { textWidth } from '../../cli/show/text.js'
import { FakeDaemon, thingsData } from './fake-daemon.js'

// The entry as a process of its own: a build of it in a temporary folder with the data of the fake things.
const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'svc-cli-'))

const test = suite<{ daemon: FakeDaemon }>('process')
test.before(async () => {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  await build({
    absWorkingDir: root,
    entryPoints: { svc: 'cli/svc.ts' },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    external: ['*/plugins/index.js', '*/kernel/index.js'],
    outExtension: { '.js': '.mjs' },
  })
  const command = { kind: 'module', args: [], options: [], module: 'stuck.mjs', export: 'run' } as const
  const commands = [{ ...command, path: 'thing wait', summary: 'Wait for what never comes' }]
  writeFileSync(join(folder, 'stuck.mjs'), 'export const run = () => new Promise(() => {})')
  writeFileSync(join(folder, 'commands.json'), writeCommandLines({ ...thingsData, commands }))
})
test.after(() => rmSync(folder, { recursive: true, force: true }))
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

function svc(home: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [join(folder, 'svc.mjs'), ...args], {
    env: { PATH: process.env.PATH, HOME: tmpdir(), SVC_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function result(child: ChildProcess) {
  const text = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', chunk => {
    text.stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', chunk => {
    text.stderr += chunk
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, ...text }
}

test('a large reply passes through a pipe whole', async ({ daemon }) => {
  const things = Array.from({ length: 20_000 }, (_, i) => ({ id: `thg_${i}`, state: 'open', note: 'x'.repeat(50) }))
  daemon.reply('GET /api/things', 200, { things })
  const { code, stdout } = await result(svc(daemon.home, 'thing', 'list', '--json'))
  assert.is(code, 0)
  assert.is(JSON.parse(stdout).things.length, things.length)
})

test('a reader that closes the pipe early is no error', async ({ daemon }) => {
  const things = Array.from({ length: 20_000 }, (_, i) => ({ id: `thg_${i}` }))
  daemon.reply('GET /api/things', 200, { things })
  const child = svc(daemon.home, 'thing', 'list')
  const ended = once(child, 'exit')
  let stderr = ''
  child.stderr?.on('data', chunk => {
    stderr += chunk
  })
  child.stdout?.once('data', () => child.stdout?.destroy())
  assert.equal(await ended, [0, null])
  assert.is(stderr, '')
})

/** The command line with its standard output on a full device. */
const onFullDevice = (home: string, ...args: string[]): ChildProcess =>
  spawn('sh', ['-c', '"$0" "$@" >/dev/full', process.execPath, join(folder, 'svc.mjs'), ...args], {
    env: { PATH: process.env.PATH, HOME: tmpdir(), SVC_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })

test('unwritable output fails with a message in every form', async ({ daemon }) => {
  if (!existsSync('/dev/full')) return
  daemon.reply('GET /api/things', 200, { things: [{ id: 'thg_1' }] })
  for (const form of [[], ['--json'], ['-o', 'toon'], ['--quiet']]) {
    const { code, stderr } = await result(onFullDevice(daemon.home, 'thing', 'list', ...form))
    assert.equal(
      [code, stderr],
      [1, 'error: the output cannot be written: ENOSPC: no space left on device, write\n'],
      String(form),
    )
  }
  assert.is((await result(onFullDevice(daemon.home, 'thing', 'nope'))).code, 2)
})

test('Ctrl-C ends a stream with exit code 130 and no message', async ({ daemon }) => {
  daemon.reply('GET /api/things/t1/owner', 200, { owner: { place_id: 'plc_1' } })
  daemon.answer('GET /api/places/plc_1/things/t1/stream', response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('id: 1\ndata: {"sequence":1,"text":"one"}\n\n')
  })
  const child = svc(daemon.home, 'thing', 'parts', 'list', 't1', '--follow')
  const ended = result(child)
  child.stdout?.once('data', () => child.kill('SIGINT'))
  assert.equal(await ended, { code: 130, signal: null, stdout: '1  one\n', stderr: '' })
})

test('exit codes of the process are the documented ones', async ({ daemon }) => {
  assert.is((await result(svc(daemon.home, 'thing', 'list'))).code, 4)
  assert.is((await result(svc(daemon.home, 'thing', 'nope'))).code, 2)
  assert.is((await result(svc(join(daemon.home, 'none'), 'thing', 'list'))).code, 3)
  assert.is((await result(svc(daemon.home, '--version'))).stdout, '1.2.3\n')
})

test('a wait for an impossible state fails with a message', async ({ daemon }) => {
  const { code, stdout, stderr } = await result(svc(daemon.home, 'thing', 'wait'))
  assert.equal([code, stdout], [1, ''])
  assert.match(stderr, 'command_stuck')
})

/** The command line on a pseudo-terminal; what it drew, and its exit code. */
function onTerminal(home: string, args: readonly string[]) {
  const code = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'
  const child = spawn('python3', ['-c', code, process.execPath, join(folder, 'svc.mjs'), ...args], {
    env: { PATH: process.env.PATH, HOME: tmpdir(), SVC_HOME: home, TERM: 'xterm', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return result(child)
}

test('a wait of over a second is shown on a real terminal and then erased', async ({ daemon }) => {
  daemon.answer('GET /api/things', response => {
    setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"things":[]}'), 1500)
  })
  const [human, json] = await Promise.all([
    onTerminal(daemon.home, ['thing', 'list']),
    onTerminal(daemon.home, ['thing', 'list', '--json']),
  ])
  assert.is(human.code, 0)
  const drawn = human.stdout.split('\r\x1b[K')
  // More than one second where the process was not given the processor meanwhile.
  assert.match(drawn[1] as string, /^. waiting for the daemon [1-9]\d*s$/)
  assert.is(drawn.at(-1), 'no things yet\r\n')
  assert.equal([json.code, json.stdout], [0, '{\r\n  "things": []\r\n}\r\n'])
})

test('a table on a terminal fits it', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [{ id: 'thg_1', note: '漢'.repeat(500) }] })
  const { stdout } = await onTerminal(daemon.home, ['thing', 'list'])
  for (const line of stdout.trimEnd().split('\r\n')) assert.ok(textWidth(line) <= 80, line)
})

test('Ctrl-C with an unresponsive daemon exits with 130 and no message', async ({ daemon }) => {
  const request = new Promise<void>(resolve => {
    daemon.answer('GET /api/things', () => resolve())
  })
  const waiting = svc(daemon.home, 'thing', 'list')
  const ended = result(waiting)
  await request
  waiting.kill('SIGINT')
  assert.equal(await ended, { code: 130, signal: null, stdout: '', stderr: '' })
})

test('Ctrl-C during a request that changes something says that it goes on', async ({ daemon }) => {
  const request = new Promise<void>(resolve => {
    daemon.answer('POST /api/things', () => resolve())
  })
  const waiting = svc(daemon.home, 'thing', 'make', '--name', 'one')
  const ended = result(waiting)
  await request
  waiting.kill('SIGINT')
  const stderr = 'interrupted; the daemon completes what it has received\n'
  assert.equal(await ended, { code: 130, signal: null, stdout: '', stderr })
})

test('head of a table and of an endless stream ends without an error', async ({ daemon }) => {
  const things = Array.from({ length: 50_000 }, (_, i) => ({ id: `thg_${i}`, note: 'x'.repeat(100) }))
  daemon.reply('GET /api/things', 200, { things })
  for (const mode of ['human', 'json', 'jsonl', 'toon']) {
    const line = `set -o pipefail; '${process.execPath}' '${join(folder, 'svc.mjs')}' thing list -o ${mode} | head -1`
    const child = spawn('bash', ['-c', line], {
      env: { PATH: process.env.PATH, HOME: tmpdir(), SVC_HOME: daemon.home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const { code, stdout, stderr } = await result(child)
    assert.equal([code, stderr, stdout.trimEnd().split('\n').length], [0, '', 1], mode)
  }
})

test.run()
