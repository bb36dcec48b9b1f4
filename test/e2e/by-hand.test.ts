// proof, timeout: 120s: the built program, as people use it
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectProcess } from '../../plugins/platform/processes/inspect.js'
import { Installed, processesWith, until } from './installed.js'

// What a person does on the first day, step by step on one home: each test goes on where the one before it ended.

interface Run {
  readonly id: string
  readonly status: string
  readonly session_id?: string
  readonly error?: string
}

interface Session {
  readonly id: string
  readonly state: string
  readonly stop_reason?: string
  readonly failure?: { readonly kind: string }
  readonly workspace_id: string
}

const at = new Installed()
const repository = at.makeRepository('repository')
const report = join(repository, 'svc-reports', 'report.md')
const seen = { workspace: '', first: {} as Run, second: {} as Run, mark: '' }
const test = suite('by hand, step by step')
test.after(() => at.remove())

const readRun = async (id: string) => (await at.json<{ run: Run }>('automation', 'runs', 'get', id)).run
const readSession = async (id: string) =>
  (JSON.parse((await at.request('socket', 'GET', `/api/sessions/${id}`)).text) as { session: Session }).session

async function trigger(): Promise<Run> {
  const { run } = await at.json<{ run: Run }>('automation', 'jobs', 'trigger', 'demo')
  return until(
    async () => {
      const now = await readRun(run.id)
      if (['failed', 'canceled'].includes(now.status))
        throw new Error(`the run is ${now.status}: ${now.error}${at.logTail()}`)
      return now.session_id === undefined ? undefined : now
    },
    60_000,
    () => `a session for run ${run.id}${at.logTail()}`,
  )
}

test('a daemon starts on an empty home', async () => {
  assert.is((await at.run(['status'])).code, 3)
  assert.match(await at.svc('daemon', 'start'), /^daemon started \(pid \d+\), http:\/\/localhost:\d+\n$/)
  assert.match(await at.svc('daemon', 'start'), /^already running/)
  assert.match(await at.svc('status'), /Status +ok/)
  assert.ok(at.discovery.port > 0)
})

test('a folder is registered as a workspace', async () => {
  assert.is((await at.run(['workspace', 'add', '.'], repository)).code, 0)
  const { workspaces } = await at.json<{ workspaces: { id: string; root_dir: string }[] }>('workspace', 'list')
  assert.equal(
    workspaces.map(({ root_dir }) => root_dir),
    [repository],
  )
  seen.workspace = workspaces[0]?.id ?? ''
})

test('a job stored as a resource becomes a job', async () => {
  const { status, text } = await at.request('socket', 'PUT', '/api/resources/automation.job/demo', {
    scope: { kind: 'workspace', id: seen.workspace },
    spec: { name: 'demo', agent_name: 'report', prompt: 'Write the report. pause 20ms between steps' },
  })
  assert.is(status, 201, text)
  assert.match(await at.svc('automation', 'jobs'), 'demo')
})

test('the run of the job asks for permission, gets it and writes the report', async () => {
  const run = await trigger()
  const session = run.session_id as string
  const follow = at.start(['session', 'events', session, '--follow'])
  await follow.shows(/svc session approve/)
  assert.match(follow.text(), /\? run: git .*\blog\b/)
  assert.not(existsSync(report))
  const ended = await until(
    async () => {
      const now = await readRun(run.id)
      if (now.status !== 'running') return now
      await at.run(['session', 'approve', session, '--yes'])
      return undefined
    },
    60_000,
    () => `the end of run ${run.id}\n${follow.text()}${at.logTail()}`,
  )
  assert.is(ended.status, 'completed', `${ended.error}\n${follow.text()}`)
  assert.is((await follow.ended).code, 0)
  const text = readFileSync(report, 'utf8')
  for (const part of ['TypeScript', 'say more', 'First commit']) assert.ok(text.includes(part), text)
  seen.first = ended
})

test('the history contains the run', async () => {
  const history = await at.svc('session', 'history', seen.first.session_id as string)
  assert.match(history, /git .*\blog\b/)
  assert.is((await readSession(seen.first.session_id as string)).stop_reason, 'completed')
})

test('the daemon is killed while a permission is pending', async () => {
  const run = await trigger()
  const follow = at.start(['session', 'events', run.session_id as string, '--follow'])
  await follow.shows(/svc session approve/)
  follow.child.kill('SIGINT')
  assert.is((await follow.ended).code, 130)
  seen.mark = at.processMark()
  assert.ok(processesWith(seen.mark).length > 0)
  const { pid } = at.discovery
  process.kill(pid, 'SIGKILL')
  await until(
    () => (inspectProcess(pid, process.platform)?.ended === false ? undefined : true),
    60_000,
    () => 'the end of the daemon',
  )
  assert.is((await at.run(['status'])).code, 3)
  seen.second = run
})

test('the next start repairs the session, and nothing is lost or resumed', async () => {
  assert.match(await at.svc('daemon', 'start'), 'daemon started')
  const session = await readSession(seen.second.session_id as string)
  assert.is(session.state, 'stopped')
  assert.is(session.stop_reason, 'agent_crashed')
  assert.is(session.failure?.kind, 'process_exit')
  const second = await readRun(seen.second.id)
  assert.is(second.status, 'failed')
  assert.match(second.error ?? '', /^agent_crashed/)
  assert.equal(await readRun(seen.first.id), seen.first)
  assert.is((await readSession(seen.first.session_id as string)).stop_reason, 'completed')
  assert.equal(processesWith(seen.mark), [])
})

test('both listeners reply with the same bytes', async () => {
  const paths = [
    '/api/workspaces',
    `/api/workspaces/${seen.workspace}`,
    '/api/resources',
    '/api/resources/automation.job/demo',
    '/api/agents',
    '/api/agents/report',
    '/api/automation/jobs',
    '/api/automation/jobs/demo',
    '/api/automation/jobs/demo/runs',
    '/api/automation/runs',
    `/api/automation/runs/${seen.first.id}`,
    '/api/sessions',
    `/api/sessions/${seen.first.session_id}`,
    `/api/workspaces/${seen.workspace}/sessions/${seen.first.session_id}/events`,
    `/api/workspaces/${seen.workspace}/sessions/${seen.first.session_id}/history`,
    `/api/workspaces/${seen.workspace}/sessions/${seen.second.session_id}/transcript`,
    '/api/openapi.json',
    '/api/automation/jobs/missing',
    '/api/no/such/route',
  ]
  for (const path of paths) {
    const socket = await at.request('socket', 'GET', path)
    const tcp = await at.request('tcp', 'GET', path)
    assert.is(tcp.text, socket.text, path)
    assert.is(tcp.status, socket.status, path)
    assert.is(tcp.headers['content-type'], socket.headers['content-type'], path)
    assert.is(socket.status, /missing|no\/such/.test(path) ? 404 : 200, `${path}: ${socket.text}`)
  }
})

test('the daemon stops and leaves nothing behind', async () => {
  const { pid } = at.discovery
  assert.is(await at.svc('daemon', 'stop'), `daemon stopped (pid ${pid})\n`)
  assert.not(existsSync(join(at.home, 'daemon.json')))
  assert.not(existsSync(join(at.home, 'daemon.sock')))
  assert.is(await at.svc('daemon', 'stop'), `no daemon is running at ${at.home}\n`)
  assert.is((await at.run(['session', 'list'])).code, 3)
  assert.equal(processesWith(seen.mark), [])
})

test.run()
