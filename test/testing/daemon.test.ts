// proof, timeout: 180s: starts, kills and restarts whole daemons
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectProcess, inspectProcesses } from '../../plugins/platform/processes/inspect.js'
import { type DaemonOptions, type StartedDaemon, startDaemon } from '../../testing/index.js'

const example = (name: string) => path.join(import.meta.dirname, '../../examples/extensions', name)
/** What the test runner finds processes by, which are left behind, and has replies checked with. */
const marks = ['SVC_TEST_MARK', 'SVC_TEST_REPLIES', 'SVC_TEST_WATCHER']
const env = Object.fromEntries(marks.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])))
const test = suite('svc/testing: a daemon in its own process')

async function withDaemon(options: DaemonOptions, use: (daemon: StartedDaemon) => Promise<void>): Promise<void> {
  const daemon = await startDaemon({ ...options, env: { ...env, ...options.env } })
  try {
    await use(daemon)
  } finally {
    await daemon.stop()
  }
}

/** Processes that one has started, once there are some. */
const childrenOf = (pid: number) => {
  const found = [...inspectProcesses(process.platform).values()].filter(({ parent }) => parent === pid)
  return found.length > 0 ? found.map(({ pid: child }) => child) : undefined
}

async function until<T>(look: () => T | undefined): Promise<T> {
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    const found = look()
    if (found !== undefined) return found
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error('nothing for 60 s')
}

const isAlive = (pid: number) => inspectProcess(pid, process.platform)?.ended === false

test('a test daemon replies, runs commands, and leaves no process and no folder', async () => {
  let seen: { pid: number; home: string } | undefined
  await withDaemon({ extensions: [example('acme.reminders')] }, async daemon => {
    seen = { pid: daemon.pid, home: daemon.home }
    const { status, body } = await daemon.request('GET', '/api/status/identity')
    assert.equal([status, body.daemon.pid], [200, daemon.pid])
    const reply = await daemon.cli('acme', 'reminders', 'set', 'tea', '--in-ms', '0', '--json')
    assert.is(reply.code, 0, reply.stderr)
    const stream = await daemon.stream('/api/ext/acme.reminders/rang')
    assert.equal(((await stream.next('rang')).data as { text: string }).text, 'tea')
    const unknown = await daemon.cli('no', 'such', 'command')
    assert.is.not(unknown.code, 0)
  })
  assert.ok(seen && !isAlive(seen.pid))
  assert.not.ok(existsSync(path.dirname(seen?.home ?? '')))
})

test('acknowledged data from before kill -9 is present after the restart', async () => {
  await withDaemon({ extensions: [example('acme.reminders')] }, async daemon => {
    const reader = await daemon.stream('/api/ext/acme.reminders/rang')
    const set = (text: string, in_ms: number) =>
      daemon.request('POST', '/api/ext/acme.reminders/reminders', { text, in_ms })
    assert.is((await set('before', 0)).status, 201)
    assert.is(((await reader.next()).data as { text: string }).text, 'before')
    assert.is((await set('later', 1000)).status, 201)
    const { pid } = daemon
    await daemon.kill()
    assert.not.ok(isAlive(pid))
    assert.match((await daemon.request('GET', '/api/status/identity').catch(error => error)).message, /ECONN|ENOENT/)
    await daemon.restart()
    assert.is.not(daemon.pid, pid)
    const resumed = await reader.resume()
    assert.is(((await resumed.next()).data as { text: string }).text, 'later')
    resumed.close()
  })
})

test('stop ends the leftover processes of a killed daemon', async () => {
  let left: number[] = []
  await withDaemon({ extensions: [example('clock-node')] }, async daemon => {
    left = await until(() => childrenOf(daemon.pid))
    await daemon.kill()
  })
  assert.equal(left.filter(isAlive), [])
})

test('a given home is kept with its contents', async () => {
  const home = mkdtempSync(path.join(os.tmpdir(), 'svc-kept-home-'))
  try {
    await withDaemon({ home, config: { limits: {} } }, async daemon => {
      assert.is(daemon.home, home)
      await daemon.kill('SIGTERM')
    })
    assert.ok(readdirSync(home).includes('svc.db'))
    assert.equal(JSON.parse(readFileSync(path.join(home, 'config.json'), 'utf8')).http, { port: 0 })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test('a daemon that does not start gives the reason and leaves nothing', async () => {
  const before = readdirSync(os.tmpdir()).filter(name => name.startsWith('svc-daemon-'))
  const failed = await startDaemon({ config: '{ "http": { "colour": 1 } }', env }).catch(error => error)
  assert.match(failed.message, /ended before it was ready:[\s\S]*colour/)
  const after = readdirSync(os.tmpdir()).filter(name => name.startsWith('svc-daemon-'))
  assert.equal(
    after.filter(name => !before.includes(name)),
    [],
  )
})

test.run()
