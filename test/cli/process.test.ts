import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
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
  writeFileSync(join(folder, 'commands.json'), JSON.stringify(thingsData))
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

test('a large reply comes through a pipe whole', async ({ daemon }) => {
  const things = Array.from({ length: 20_000 }, (_, i) => ({ id: `thg_${i}`, state: 'open', note: 'x'.repeat(50) }))
  daemon.reply('GET /api/things', 200, { things })
  const { code, stdout } = await result(svc(daemon.home, 'thing', 'list', '--json'))
  assert.is(code, 0)
  assert.is(JSON.parse(stdout).things.length, things.length)
})

test('a reader that has seen enough is no error', async ({ daemon }) => {
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

test('Ctrl-C ends a stream with 130 and without a word', async ({ daemon }) => {
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

test('exit codes reach the shell', async ({ daemon }) => {
  assert.is((await result(svc(daemon.home, 'thing', 'list'))).code, 4)
  assert.is((await result(svc(daemon.home, 'thing', 'nope'))).code, 2)
  assert.is((await result(svc(join(daemon.home, 'none'), 'thing', 'list'))).code, 3)
  assert.is((await result(svc(daemon.home, '--version'))).stdout, '1.2.3\n')
})

test.run()
