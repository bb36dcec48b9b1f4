// proof, timeout: 240s: whole daemons, started by the command itself in the home of a new user
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, type Ran } from './installed.js'

// Without bubblewrap, approve-all and jobs are refused until the user decides otherwise.
const at = new Installed({ http: { port: 0 }, defaults: { sandbox: 'none' } }, 'default')

function project(name: string): string {
  const folder = path.join(at.user, 'code', name)
  mkdirSync(folder, { recursive: true })
  execFileSync('git', ['init', '--quiet', folder], { env: at.env })
  writeFileSync(path.join(folder, 'README.md'), `# ${name}\n`)
  return folder
}

const ok = (ran: Ran) => {
  assert.is(ran.code, 0, `${ran.stdout}${ran.stderr}`)
  return ran
}
test.after(() => at.remove())

test('svc run in a project below the home runs in the project and registers it', async () => {
  const app = project('app')
  const src = path.join(app, 'src')
  mkdirSync(src)
  const { stdout, stderr } = ok(
    await at.run(['run', '--agent', 'report', '--permissions', 'approve-all', 'Report'], src),
  )
  assert.match(stderr, `registered ${app} as workspace app`)
  assert.ok(existsSync(path.join(app, 'svc-reports')))
  assert.not(existsSync(path.join(at.user, 'svc-reports')))
  assert.not.match(stdout, /svc\.db/)
  const { workspaces } = await at.json<{ workspaces: { root_dir: string }[] }>('workspace', 'list')
  assert.equal(
    workspaces.map(workspace => workspace.root_dir),
    [app],
  )
})

test('an agent is created in the project, and a job of the project runs in it', async () => {
  const tool = project('tool')
  ok(await at.run(['agent', 'create', 'local', '--prompt', 'Help.'], tool))
  assert.ok(existsSync(path.join(tool, '.svc', 'agents', 'local', 'AGENT.md')))
  assert.not(existsSync(path.join(at.home, 'agents', 'local')))
  ok(await at.run(['job', 'create', 'nightly', '--every', '1d', '--agent', 'report', '--prompt', 'Report'], tool))
  const { job } = await at.json<{ job: { workspace_id: string } }>('job', 'get', 'nightly')
  const { workspace } = await at.json<{ workspace: { id: string } }>('workspace', 'info', 'tool')
  assert.is(job.workspace_id, workspace.id)
})

test('the home itself becomes a workspace only after a question', async () => {
  for (const command of [
    ['run', '--agent', 'report', 'Report'],
    ['session', 'new', '--agent', 'report'],
    ['job', 'create', 'x', '--every', '1d', '--agent', 'report', '--prompt', 'Report'],
    ['task', 'create', 'Title'],
    ['agent', 'create', 'x', '--prompt', 'Help.'],
  ]) {
    const { code, stderr } = await at.run(command, at.user)
    assert.is(code, 2, `${command.join(' ')}: ${stderr}`)
    assert.match(stderr, /is your home.*svc workspace add/s)
  }
})

test('a global job runs in scratch when its agent names a command', async () => {
  const program = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))
  const agent = [
    'agent',
    'create',
    'own',
    '--everywhere',
    '--command',
    `${process.execPath} ${program}`,
    '--prompt',
    'Help.',
  ]
  ok(await at.run(agent, at.user))
  const job = [
    'job',
    'create',
    'everywhere',
    '--scope',
    'global',
    '--every',
    '1d',
    '--agent',
    'own',
    '--prompt',
    'say hello',
  ]
  ok(await at.run(job, at.user))
  ok(await at.run(['job', 'trigger', 'everywhere'], at.user))
  interface Run {
    status: string
    session_id?: string
    error?: string
  }
  let run: Run | undefined
  for (let tries = 0; tries < 300 && !['completed', 'failed', 'canceled'].includes(run?.status ?? ''); tries++)
    run = (await at.json<{ runs: Run[] }>('job', 'history', 'everywhere')).runs[0]
  assert.is(run?.status, 'completed', JSON.stringify(run))
  const { session } = await at.json<{ session: { workspace_path: string } }>('session', 'info', run?.session_id ?? '')
  assert.is(session.workspace_path, path.join(at.home, 'scratch'))
  ok(await at.run(['workspace', 'trust', 'scratch'], at.user))
  assert.is((await at.run(['workspace', 'remove', 'scratch'], at.user)).code, 5)
})

test.run()
