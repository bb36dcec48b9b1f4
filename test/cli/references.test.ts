import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listOf } from '../../cli/commands/candidates.js'
import type { Entry } from '../../cli/commands/find-command.js'
import { wantedId } from '../../cli/commands/references.js'
import { exitCodes } from '../../cli/fault.js'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist, entries } from './tree.js'

const rule = suite('id arguments')
const test = suite<{ daemon: FakeDaemon }>('references in place of ids')

test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
  context.daemon.version = data.version
})
test.after.each(({ daemon }) => daemon.remove())

/** Arguments with an id that nothing else stands for, and why. */
const whole: Readonly<Record<string, string>> = {
  'attention ack id': 'its list is that of `attention`, which is of a person and a surface',
  'auth key delete id': 'a key is deleted by the id that its list shows',
  'automation suggestions accept id': 'its list is that of a workspace',
  'automation suggestions dismiss id': 'its list is that of a workspace',
  'change show id': 'a change is named by the id that its list shows, or `last`',
  'bridge discard delivery_id': 'deliveries are listed bridge by bridge',
  'bridge resend delivery_id': 'deliveries are listed bridge by bridge',
  'marketplace info entry_id': 'a name',
  'network directs show direct_id': 'rooms are listed channel by channel',
  'network directs messages direct_id': 'rooms are listed channel by channel',
  'network directs open peer_id': 'peers are listed workspace by workspace',
  'network peers show peer_id': 'peers are listed workspace by workspace',
  'network threads promote origin_message_id': 'messages are listed thread by thread',
  'network threads promote thread_id': 'threads are listed channel by channel',
  'network threads show thread_id': 'threads are listed channel by channel',
  'network threads messages thread_id': 'threads are listed channel by channel',
  'network work lookup work_id': 'agents choose it',
  'provider auth status provider_id': 'a name',
  'provider info provider_id': 'a name',
  'provider models list provider_id': 'a name',
  'provider models set model_id': 'a name',
  'provider models set provider_id': 'a name',
  'resource delete id': 'a name, or of any form',
  'resource get id': 'a name, or of any form',
  'resource put id': 'a name, or of any form',
  'session interactions interaction_id': 'its list is that of a session',
  'session input remove queue_entry_id': 'its list is that of a session',
  'task notification remove subscription_id': 'subscriptions are listed task by task',
  'task notification show subscription_id': 'subscriptions are listed task by task',
  'task review cancel id': 'reviews are listed task by task',
  'task review route id': 'reviews are listed task by task',
  'task review show id': 'reviews are listed task by task',
  'task review start id': 'reviews are listed task by task',
  'task review verdict id': 'reviews are listed task by task',
  'task unblock block_id': 'blocks are listed task by task',
  'tool call id': 'a name',
  'tool grants delete id': 'its list is that of a workspace',
  'tool grants put tool_id': 'a name',
  'tool show id': 'a name',
  'toolset show id': 'a name',
  'undo id': 'a change is named by the id that its list shows, or `last`',
}

const resolves = (entry: Entry, name: string) => {
  const wanted = wantedId(entry.path, name, '@last')
  return wanted !== undefined && listOf(wanted.name, entry, data, {}) !== undefined
}

const ids = entries.flatMap(entry =>
  (entry.kind === 'local' ? [] : entry.args).flatMap(({ name }) =>
    /(?:^|_)id$|^session$/.test(name) ? [{ entry, name, at: `${entry.path} ${name}` }] : [],
  ),
)
for (const { entry, name, at } of ids)
  rule(`the argument ${at} takes ${Object.hasOwn(whole, at) ? 'an id' : '@last, a unique prefix and a name'}`, () =>
    assert.is(
      resolves(entry, name) || Object.hasOwn(whole, at),
      true,
      'put the thing into `idPrefixes`, or the argument into the table of this test',
    ),
  )

rule('most id arguments take @last, a unique prefix and a name', () =>
  assert.ok(ids.filter(({ entry, name }) => resolves(entry, name)).length > 40),
)
rule.run()

const sessions = [
  { id: 'ses_aa00000000000000', name: 'first', created_at: '2030-01-01T00:00:00Z' },
  { id: 'ses_ab00000000000000', name: 'second', created_at: '2030-01-03T00:00:00Z' },
]
const runs = [{ id: 'run_ac00000000000000', started_at: '2030-01-01T00:00:00Z' }]

test('why takes @last for the newest session, a session by name, and a run by prefix', async ({ daemon }) => {
  daemon.reply('GET /api/sessions', 200, { sessions })
  daemon.reply('GET /api/automation/runs', 200, { runs, page: { has_more: false, limit: 50 } })
  daemon.reply('GET /api/audit/why', 200, { end: 'request', chain: [] })
  const why = async (text: string) => {
    const { code, stderr } = await runCli(daemon.home, ['why', text], { data, root: dist })
    assert.is(code, 0, stderr)
    return daemon.asked.splice(0).at(-1)?.url
  }
  assert.is(await why('@last'), '/api/audit/why?id=ses_ab00000000000000')
  assert.is(await why('first'), '/api/audit/why?id=ses_aa00000000000000')
  assert.is(await why('ses_aa'), '/api/audit/why?id=ses_aa00000000000000')
  assert.is(await why('run_ac'), '/api/audit/why?id=run_ac00000000000000')
  assert.is(await why('evt_ac00000000000000'), '/api/audit/why?id=evt_ac00000000000000', 'other ids are left alone')
  const several = await runCli(daemon.home, ['why', 'ses_a'], { data, root: dist })
  assert.is(several.code, exitCodes.usage)
  assert.match(several.stderr, 'ambiguous_reference')
})

test('archived items are found by name and prefix; why and audit take names of several kinds', async ({ daemon }) => {
  const page = { has_more: false, limit: 50 }
  const archived = [{ id: 'ses_cc00000000000000', name: 'old one', workspace_id: 'ws_1' }]
  daemon.answer('GET /api/sessions', (response, { url }) => {
    const found = url.includes('archived=true') ? archived : sessions
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ sessions: found, page }))
  })
  daemon.reply('GET /api/sessions/ses_cc00000000000000/owner', 200, { workspace_id: 'ws_1' })
  daemon.reply('POST /api/workspaces/ws_1/sessions/ses_cc00000000000000/unarchive', 200, { session: {} })
  daemon.reply('GET /api/automation/runs', 200, { runs, page })
  daemon.reply('GET /api/automation/jobs', 200, { jobs: [{ id: 'job_ad00000000000000', name: 'night' }], page })
  daemon.reply('GET /api/automation/triggers', 200, { triggers: [], page })
  daemon.reply('GET /api/tasks', 200, { tasks: [], page })
  daemon.reply('GET /api/audit/why', 200, { end: 'request', chain: [] })
  daemon.reply('GET /api/audit', 200, { entries: [], page })
  const requestOf = async (...args: string[]) => {
    const { code, stderr } = await runCli(daemon.home, args, { data, root: dist })
    assert.is(code, 0, stderr)
    return daemon.asked.splice(0).at(-1)?.url
  }
  const restored = '/api/workspaces/ws_1/sessions/ses_cc00000000000000/unarchive'
  assert.is(await requestOf('session', 'unarchive', 'ses_cc'), restored)
  assert.is(await requestOf('session', 'unarchive', 'old one'), restored)
  assert.is(await requestOf('why', 'old one'), '/api/audit/why?id=ses_cc00000000000000')
  assert.is(await requestOf('why', 'night'), '/api/audit/why?id=job_ad00000000000000')
  assert.is(await requestOf('audit', 'list', '--subject', 'night'), '/api/audit?subject=job_ad00000000000000')
  assert.is(await requestOf('audit', 'list', '--subject', 'agents'), '/api/audit?subject=agents')
})

test('a run of a task is found by @last and prefix, a task by identifier or draft, a budget by its task', async ({
  daemon,
}) => {
  const page = { has_more: false, limit: 50, total: 2 }
  const taskRuns = [
    { id: 'trun_ac00000000000000', task_title: 'one', queued_at: '2030-01-01T00:00:00Z' },
    { id: 'trun_bc00000000000000', task_title: 'two', queued_at: '2030-01-02T00:00:00Z' },
  ]
  const tasks = [{ id: 'task_ac00000000000000', identifier: 'WEB-12', created_at: '2030-01-01T00:00:00Z' }]
  daemon.reply('GET /api/task-runs', 200, { runs: taskRuns, page })
  daemon.reply('GET /api/tasks', 200, { tasks, page })
  for (const id of ['trun_ac00000000000000', 'trun_bc00000000000000']) {
    daemon.reply(`GET /api/task-runs/${id}`, 200, { run: {} })
    daemon.reply(`POST /api/runs/${id}/retry`, 200, { previous_run: {}, run: {} })
  }
  daemon.reply('POST /api/tasks/task_ac00000000000000/publish', 200, { task: {} })
  daemon.reply('GET /api/budgets/task/task_ac00000000000000', 200, { budget: {} })
  daemon.reply('GET /api/budgets/agent/coder', 200, { budget: {} })
  const requestOf = async (...args: string[]) => {
    const { code, stderr } = await runCli(daemon.home, args, { data, root: dist })
    assert.is(code, 0, stderr)
    return daemon.asked.splice(0).map(({ url }) => url)
  }
  assert.equal(await requestOf('task', 'run', 'show', '@last'), [
    '/api/task-runs',
    '/api/task-runs/trun_bc00000000000000',
  ])
  assert.is((await requestOf('task', 'run', 'show', 'trun_a')).at(-1), '/api/task-runs/trun_ac00000000000000')
  assert.is((await requestOf('task', 'retry', '@last')).at(-1), '/api/runs/trun_bc00000000000000/retry')
  const published = ['/api/tasks?include_drafts=true', '/api/tasks/task_ac00000000000000/publish']
  assert.equal(await requestOf('task', 'publish', 'WEB-12'), published)
  assert.is((await requestOf('budget', 'show', 'task', '@last')).at(-1), '/api/budgets/task/task_ac00000000000000')
  assert.equal(await requestOf('budget', 'show', 'agent', 'coder'), ['/api/budgets/agent/coder'])
})

test('a bridge is found by @last, prefix and display name, also as one of several arguments', async ({ daemon }) => {
  const page = { has_more: false, limit: 50, total: 2 }
  const bridges = [
    { id: 'bri_ac00000000000000', display_name: 'Team chat', created_at: '2030-01-02T00:00:00Z' },
    { id: 'bri_bc00000000000000', display_name: 'Support', created_at: '2030-01-01T00:00:00Z' },
  ]
  daemon.reply('GET /api/bridges', 200, { bridges, page })
  daemon.reply('GET /api/bridges/providers/slack/manifest', 200, { manifest: {} })
  daemon.reply('POST /api/tasks/task_ac00000000000000/notifications/bridges', 200, { subscription: {} })
  for (const { id } of bridges) {
    daemon.reply(`GET /api/bridges/${id}`, 200, { bridge: {} })
    daemon.reply(`GET /api/bridges/${id}/secret-bindings`, 200, { bindings: [] })
  }
  const requestOf = async (...args: string[]) => {
    const { code, stderr } = await runCli(daemon.home, args, { data, root: dist })
    assert.is(code, 0, stderr)
    return daemon.asked.splice(0).at(-1)
  }
  assert.is((await requestOf('bridge', 'get', '@last'))?.url, '/api/bridges/bri_ac00000000000000')
  assert.is((await requestOf('bridge', 'get', 'bri_b'))?.url, '/api/bridges/bri_bc00000000000000')
  assert.is((await requestOf('bridge', 'get', 'Team chat'))?.url, '/api/bridges/bri_ac00000000000000')
  const bindings = await requestOf('bridge', 'secret-bindings', 'list', 'Support')
  assert.is(bindings?.url, '/api/bridges/bri_bc00000000000000/secret-bindings')
  const manifest = await requestOf('bridge', 'manifest', 'slack', '@last')
  assert.is(manifest?.url, '/api/bridges/providers/slack/manifest?instance=bri_ac00000000000000')
  const room = ['--delivery-mode', 'direct-send', '--scope', 'global', '--group-id', 'C1']
  const request = await requestOf('task', 'notification', 'add', 'task_ac00000000000000', 'Support', ...room)
  assert.match(JSON.stringify(request?.body), '"bri_bc00000000000000"')
})

test.run()
