import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { exitCodes } from '../../cli/fault.js'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist } from './tree.js'

// One option names a workspace, whichever way its request wants it, and one says that none is meant.
const test = suite<{ daemon: FakeDaemon }>('workspace options')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

const app = { id: 'ws_00000000000000aa', name: 'app', root_dir: '/code/app' }
const page = { has_more: false, limit: 50 }

/** Requests of a command that runs in the folder of a workspace, without those that look for a workspace. */
function inApp(daemon: FakeDaemon) {
  daemon.answer('GET /api/workspaces', (response, { url }) => {
    const at = new URL(url, 'http://d').searchParams.get('path')
    const workspaces = at === null || at === app.root_dir ? [app] : []
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ workspaces }))
  })
  return async (...args: string[]) => {
    const ran = await runCli(daemon.home, args, { data, root: dist, cwd: app.root_dir })
    const requests = daemon.asked
      .splice(0)
      .filter(({ url }) => !url.startsWith('/api/workspaces?') && url !== '/api/workspaces')
    return {
      ...ran,
      asked: requests.map(({ url, body }) => (body === undefined ? url : `${url} ${JSON.stringify(body)}`)),
    }
  }
}

test('--workspace takes an id, a name or a path where the request wants an id', async ({ daemon }) => {
  const svc = inApp(daemon)
  daemon.reply('GET /api/automation/jobs', 200, { jobs: [], page })
  daemon.reply('GET /api/settings/keys', 200, { keys: [] })
  daemon.reply('DELETE /api/settings/mcp-servers/z', 200, {})
  const jobs = `/api/automation/jobs?workspace_id=${app.id}&scope=workspace`
  for (const given of ['.', 'app', app.root_dir, app.id, '../app'])
    assert.equal((await svc('job', 'list', '--workspace', given)).asked, [jobs], given)
  assert.equal((await svc('job', 'list', '--workspace-id', 'app')).asked, [jobs], 'the earlier name')
  assert.equal((await svc('config', 'list', '--workspace', '.')).asked, [`/api/settings/keys?workspace_id=${app.id}`])
  const removed = await svc('mcp', 'remove', 'z', '--workspace', '.')
  assert.equal(removed.asked, [`/api/settings/mcp-servers/z?workspace_id=${app.id}&scope=workspace`])
  daemon.reply('GET /api/workspaces/nope', 404, { error: 'no workspace nope', code: 'workspace_not_found' })
  assert.is((await svc('job', 'list', '--workspace', 'nope')).code, exitCodes.notFound)
})

test('--global means no workspace, also within one', async ({ daemon }) => {
  const svc = inApp(daemon)
  daemon.reply('GET /api/automation/jobs', 200, { jobs: [], page })
  daemon.reply('GET /api/skills', 200, { skills: [] })
  daemon.reply('POST /api/skills/greet/disable', 200, { ok: true })
  daemon.reply('POST /api/agents', 201, { agent: { name: 'zoe' } })
  assert.equal((await svc('job', 'list', '--global')).asked, ['/api/automation/jobs?scope=global'])
  assert.equal((await svc('skill', 'list')).asked, [`/api/skills?workspace=${app.id}`])
  assert.equal((await svc('skill', 'list', '--global')).asked, ['/api/skills'])
  assert.equal((await svc('skill', 'disable', 'greet')).asked, [`/api/skills/greet/disable?workspace=${app.id}`])
  assert.equal((await svc('skill', 'disable', 'greet', '--global')).asked, ['/api/skills/greet/disable'])
  for (const option of ['--global', '--everywhere']) {
    const { asked: requests, stderr } = await svc('agent', 'create', 'zoe', '--prompt', 'p', option)
    assert.not(requests.join().includes(app.id), stderr)
  }
  for (const args of [
    ['job', 'list', '--global', '--workspace', 'app'],
    ['job', 'list', '--global', '--scope', 'workspace'],
    ['agent', 'create', 'zoe', '--global', '--workspace', 'app'],
  ])
    assert.is((await svc(...args)).code, exitCodes.usage, args.join(' '))
})

test('a new or changed agent is shown with what is odd about it', async ({ daemon }) => {
  const message = 'provider "nonsense" is not in the catalog'
  const agent = { name: 'zoe', origin: 'global', definition_digest: 'd', effective_runtime: null, skills: {} }
  const odd = { agent: { ...agent, diagnostics: [{ error_kind: 'provider_unresolved', message, path: '/x' }] } }
  daemon.reply('POST /api/agents', 201, odd)
  daemon.reply('GET /api/agents/zoe', 200, odd)
  daemon.reply('PUT /api/agents/zoe', 200, odd)
  for (const verb of ['create', 'update']) {
    const ran = await runCli(daemon.home, ['agent', verb, 'zoe', '--prompt', 'p', '--global'], { data, root: dist })
    assert.match(ran.stdout + ran.stderr, message)
  }
})

test('every option for a workspace is --workspace, and every option for none is --global', () => {
  const wrong = [...data.routes, ...data.commands].flatMap(({ path, options }) =>
    options.flatMap(option => {
      const name = 'option' in option ? option.option : option.name
      return ['workspace-id', 'everywhere', 'all-workspaces'].includes(name) ? [`${path} --${name}`] : []
    }),
  )
  assert.equal(wrong, [])
})

test('--quiet prints the identifier of each row for every kind of command', async ({ daemon }) => {
  const svc = inApp(daemon)
  const lists: Readonly<Record<string, readonly [string, unknown, string]>> = {
    'audit list': ['GET /api/audit', { entries: [{ seq: 7, actor: { id: 'operator' } }], page }, '7'],
    'config list': ['GET /api/settings/keys', { keys: [{ key: 'log.level', value: 'info' }] }, 'log.level'],
    'hooks events': ['GET /api/hooks/events', { events: [{ event: 'session.created' }] }, 'session.created'],
    'vault list': ['GET /api/vault/secrets', { secrets: [{ ref: 'vault:mcp/a', kind: 'token' }] }, 'vault:mcp/a'],
    inbox: ['GET /api/inbox', { items: [{ item_id: 'automation:job_1', kind: 'failed' }] }, 'automation:job_1'],
  }
  for (const [command, [route, body, id]] of Object.entries(lists)) {
    daemon.reply(route, 200, body)
    const { stdout, stderr } = await svc(...command.split(' '), '--quiet')
    assert.is(stdout, `${id}\n`, `${command}: ${stderr}`)
  }
})

test('doctor exits with 1 on an error and prints all items', async ({ daemon }) => {
  const svc = inApp(daemon)
  const items = [{ id: 'store.state', severity: 'error', message: 'it failed' }]
  daemon.reply('GET /api/doctor', 200, { status: 'error', items })
  const found = await svc('doctor')
  assert.is(found.code, exitCodes.failed)
  assert.match(found.stdout, 'it failed')
  daemon.reply('GET /api/doctor', 200, { status: 'warning', items: [] })
  assert.is((await svc('doctor')).code, exitCodes.done)
})

test('a prompt over the limit is refused before it is sent', async ({ daemon }) => {
  const svc = inApp(daemon)
  daemon.reply('GET /api/sessions/ses_0000000000000001/owner', 200, { workspace_id: app.id })
  const refused = await svc('session', 'prompt', 'ses_0000000000000001', 'x'.repeat(1024 * 1024))
  assert.is(refused.code, exitCodes.failed)
  assert.match(refused.stderr, 'code: prompt_too_large')
  assert.not(refused.asked.some(url => url.endsWith('/prompt')))
})

test.run()
