import { readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findCommand } from '../../cli/commands/find-command.js'
import { exitCodes } from '../../cli/fault.js'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist, entries } from './tree.js'

const docs = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs')
const rules = readFileSync(path.join(docs, 'cli.md'), 'utf8')
const glossary = readFileSync(path.join(docs, 'glossary.md'), 'utf8')
const rule = suite('rules of the command names')
const test = suite<{ daemon: FakeDaemon }>('command line rules')

test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
  context.daemon.version = data.version
})
test.after.each(({ daemon }) => daemon.remove())

const named = (words: string) => {
  const found = findCommand(words.split(' '), entries)
  return found.is === 'command' ? found.entry.path : found.is
}

/** Words that begin a summary and are no order. */
const noOrder = /^(?:A|An|The|One|What|Which|Where|Whether|Everything|[A-Z]\w*[^s]s)$/
const verbsOnS = /^(?:Press|Focus|Process|Dismiss|Compress|Pass|Discuss)$/

for (const { path, summary } of entries)
  rule(`the summary of svc ${path} is an imperative without a full stop`, () => {
    const [first = ''] = summary.split(/[ ,:;]/)
    assert.not.ok(summary.endsWith('.'), summary)
    assert.not.ok(noOrder.test(first) && !verbsOnS.test(first), summary)
  })

for (const { path } of entries) {
  const [group, ...rest] = path.split(' ')
  if (rest.length > 0 && !group?.endsWith('s'))
    rule(`the plural ${group}s names svc ${path}`, () => assert.is(named([`${group}s`, ...rest].join(' ')), path))
}

for (const words of ['job list', 'jobs list', 'automation job list', 'jobs'])
  rule(`svc ${words} lists jobs`, () => assert.is(named(words), 'automation jobs list'))

const others = {
  show: ['info', 'get', 'inspect', 'lookup', 'status'],
  create: ['new', 'add', 'put', 'register', 'activate', 'propose', 'open', 'init', 'install'],
  update: ['edit', 'rename', 'set', 'put', 'write'],
  delete: ['remove', 'unset', 'reset', 'deactivate'],
}
/** Commands with the words of their standard verb. */
const standard = entries.flatMap(({ path }) => {
  const words = path.split(' ')
  const last = words.pop() as string
  return Object.entries(others).flatMap(([verb, names]) => {
    const typed = [...words, verb].join(' ')
    const isFirst = last === names.find(name => entries.some(entry => entry.path === [...words, name].join(' ')))
    if (words.length === 0 || !isFirst || entries.some(entry => `${entry.path} `.startsWith(`${typed} `))) return []
    return [[typed, path] as const]
  })
})
for (const [typed, path] of standard)
  rule(`the standard verb svc ${typed} is svc ${path}`, () => assert.is(named(typed), path))

rule('standard verbs are aliases of many commands, and existing commands keep their names', () => {
  assert.ok(standard.length > 40, `${standard.length}`)
  assert.is(named('job pause'), 'automation jobs disable')
  assert.is(named('job resume'), 'automation jobs enable')
  assert.is(named('session resume'), 'session resume')
})

/** Commands that replace or delete something without a standard verb: words of the field for what two sides agree on. */
const DOMAIN_VERBS = [
  'network accept-offers',
  'network refuse-offers',
  'network subscribe',
  'network unshare',
  'network unsubscribe',
  'network withdraw',
]

const verbsOf: Readonly<Record<string, readonly string[]>> = {
  PATCH: ['update'],
  PUT: ['create', 'update'],
  DELETE: ['delete'],
}
for (const entry of entries) {
  const [last = '', ...words] = entry.path.split(' ').reverse()
  const group = words.reverse().join(' ')
  const verbs = 'method' in entry ? (verbsOf[entry.method] ?? []) : []
  if (group === '' || verbs.length === 0) continue
  const isDomainVerb = DOMAIN_VERBS.includes(entry.path)
  rule(`the group of svc ${entry.path} has ${isDomainVerb ? 'no standard verb' : verbs.join(' or ')}`, () => {
    const isKnown = (verb: string) => verb === last || entries.some(({ path }) => path === named(`${group} ${verb}`))
    assert.is(verbs.some(isKnown), !isDomainVerb)
  })
}
rule.run()

const jobs = [
  { id: 'job_aa00000000000000', name: 'nightly', created_at: '2030-01-01T00:00:00Z' },
  { id: 'job_ab00000000000000', name: 'weekly', created_at: '2030-01-03T00:00:00Z' },
  { id: 'job_b000000000000000', name: 'job_a', created_at: '2030-01-02T00:00:00Z' },
  { id: 'job_b100000000000000', name: 'yearly', created_at: '2030-01-01T00:00:00Z' },
]

test('a job is found by id without a request, by name, by unique prefix, and by @last', async ({ daemon }) => {
  const svc = (...argv: string[]) => runCli(daemon.home, argv, { data, root: dist })
  const requestsOf = () => daemon.asked.splice(0).map(({ method, url }) => `${method} ${url}`)
  daemon.reply('GET /api/automation/jobs', 200, { jobs, page: { has_more: false, limit: 50 } })
  for (const { id } of jobs) daemon.reply(`GET /api/automation/jobs/${id}`, 200, { job: { id } })
  const get = async (text: string) => {
    const { code, stderr } = await svc('job', 'show', text)
    assert.is(code, 0, stderr)
    return requestsOf()
  }
  const list = 'GET /api/automation/jobs'
  assert.equal(await get('job_aa00000000000000'), ['GET /api/automation/jobs/job_aa00000000000000'])
  assert.equal(await get('nightly'), [list, 'GET /api/automation/jobs/job_aa00000000000000'])
  assert.equal(await get('job_ab'), [list, 'GET /api/automation/jobs/job_ab00000000000000'])
  assert.equal(await get('@last'), [list, 'GET /api/automation/jobs/job_ab00000000000000'])
  assert.equal(
    await get('job_a'),
    [list, 'GET /api/automation/jobs/job_b000000000000000'],
    'a name is nearer than a prefix',
  )

  const several = await svc('job', 'delete', 'job_b')
  assert.is(several.code, exitCodes.usage)
  assert.match(
    several.stderr,
    /job_b is ambiguous: job_b000000000000000 \(job_a\), job_b100000000000000 \(yearly\)\n {2}code: ambiguous_reference/,
  )
  assert.equal(requestsOf(), [list], 'nothing was deleted')
  // A daemon with a single job: what any id begins with must not be taken for it.
  daemon.reply(list, 200, { jobs: jobs.slice(0, 1), page: { has_more: false, limit: 50 } })
  for (const text of ['j', 'job_']) {
    assert.is((await svc('job', 'delete', text)).code, exitCodes.notFound)
    assert.equal(requestsOf(), [list, `DELETE /api/automation/jobs/${text}`])
  }
  const none = await svc('job', 'delete', 'nobody')
  assert.is(none.code, exitCodes.notFound)
  assert.equal(requestsOf(), [list, 'DELETE /api/automation/jobs/nobody'])
})

test('names are searched on every page of a list', async ({ daemon }) => {
  daemon.answer('GET /api/automation/jobs', (response, { url }) => {
    const second = url.includes('cursor=two')
    const page = second ? { has_more: false, limit: 1 } : { has_more: true, limit: 1, next_cursor: 'two' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jobs: second ? [jobs[1]] : [jobs[0]], page }))
  })
  daemon.reply('GET /api/automation/jobs/job_ab00000000000000', 200, { job: jobs[1] })
  assert.is((await runCli(daemon.home, ['job', 'show', 'weekly'], { data, root: dist })).code, 0)
})

test('a job is enabled and disabled by name', async ({ daemon }) => {
  daemon.reply('GET /api/automation/jobs', 200, { jobs, page: { has_more: false, limit: 50 } })
  daemon.reply('PATCH /api/automation/jobs/job_aa00000000000000', 200, { job: { ...jobs[0], next_run: null } })
  const paused = await runCli(daemon.home, ['jobs', 'pause', 'nightly'], { data, root: dist })
  assert.equal(paused, { code: 0, stdout: 'disabled job nightly\n', stderr: '' })
  assert.equal(daemon.asked.at(-1)?.body, { enabled: false })
})

const WS = 'ws_0123456789abcdef'
const create = ['job', 'create', 'nightly', '--every', '1d', '--prompt', 'Look at the tests']
const schedule = { mode: 'every', interval: '1d' }

test('a query that needs a workspace gets the current one unless another is given', async ({ daemon }) => {
  const root_dir = realpathSync(daemon.home)
  daemon.hasWorkspace(WS, root_dir)
  daemon.reply(`GET /api/workspaces/${WS}`, 200, { workspace: { id: WS } })
  const at = '/api/settings/mcp-servers/tracker'
  const status = { server_name: 'tracker', status: 'needs_login' }
  daemon.reply(`GET ${at}/auth/status`, 200, status)
  daemon.reply(`POST ${at}/auth/logout`, 200, status)
  daemon.reply(`DELETE ${at}`, 200, { applied: true })
  const svc = async (cwd: string, ...argv: string[]) => {
    const { code, stdout, stderr } = await runCli(daemon.home, ['mcp', ...argv], { data, root: dist, cwd })
    assert.is(code, 0, stderr)
    return [new URL(daemon.asked.at(-1)?.url ?? '', 'http://d').searchParams.toString(), stdout]
  }
  for (const verb of ['status', 'logout']) {
    assert.is((await svc(root_dir, 'auth', verb, 'tracker'))[0], `scope=workspace&workspace_id=${WS}`)
    assert.is((await svc('/', 'auth', verb, 'tracker'))[0], 'scope=global')
    assert.is((await svc(root_dir, 'auth', verb, 'tracker', '--scope', 'global'))[0], 'scope=global')
  }
  assert.is((await svc('/', 'remove', 'tracker'))[1], 'removed MCP server tracker\n')
})

test('job create takes the workspace from the directory and the agent from the daemon', async ({ daemon }) => {
  const root_dir = realpathSync(daemon.home)
  daemon.hasWorkspace(WS, root_dir)
  daemon.reply(`GET /api/workspaces/${WS}`, 200, { workspace: { id: WS, default_agent: 'coder' } })
  daemon.reply('GET /api/workspaces/other', 200, { workspace: { id: 'ws_00000000000000ff' } })
  daemon.reply('POST /api/automation/jobs', 201, { job: jobs[0] })
  const svc = async (cwd: string, ...more: string[]) => {
    const { code, stderr } = await runCli(daemon.home, [...create, ...more], { data, root: dist, cwd })
    assert.is(code, 0, stderr)
    return daemon.asked.at(-1)?.body
  }
  const job = { name: 'nightly', prompt: 'Look at the tests', schedule }
  const here = { ...job, scope: 'workspace', workspace_id: WS }
  assert.equal(await svc(root_dir), here)
  assert.equal(await svc(root_dir, '--agent', 'report'), { ...here, agent_name: 'report' })
  assert.equal(await svc(root_dir, '--agent-name', 'report'), { ...here, agent_name: 'report' }, 'its name before')
  assert.equal(await svc('/', '--workspace', 'other'), { ...here, workspace_id: 'ws_00000000000000ff' })
  const byOption = await runCli(daemon.home, ['job', 'create', '--name', 'nightly', ...create.slice(3)], {
    data,
    root: dist,
    cwd: root_dir,
  })
  assert.is(byOption.code, 0, byOption.stderr)
  assert.equal(daemon.asked.at(-1)?.body, here)
  const everywhere = { ...job, scope: 'global' }
  for (const cwd of ['/', root_dir]) assert.equal(await svc(cwd, '--scope', 'global'), everywhere)
  const wide = await runCli(daemon.home, create, { data, root: dist, cwd: '/' })
  assert.is(wide.code, exitCodes.usage)
  const twice = await runCli(daemon.home, [...create, '--name', 'other'], { data, root: dist, cwd: '/' })
  assert.is(twice.code, exitCodes.usage)
  assert.match(twice.stderr, /give name or --name, not both/)
})

test('help explains a glossary word before the commands of the group with the same name', async () => {
  const help = async (word: string) =>
    (await runCli('/', ['help', word], { data, root: dist, env: { COLUMNS: '60' } })).stdout
  const terms = [...glossary.matchAll(/^## (.+)$/gm)].map(([, term]) => term as string)
  assert.equal(terms.slice().sort(Intl.Collator('en').compare), terms)
  for (const term of terms) {
    if (entries.some(({ path }) => path === term)) continue
    const text = await help(term)
    assert.ok(
      text.split('\n').every(line => line.length <= 60),
      text,
    )
    const [, meaning = ''] = new RegExp(`^## ${term}\\n\\n(.{20})`, 'm').exec(glossary.replaceAll('`', '')) ?? []
    assert.ok(meaning !== '' && text.startsWith(meaning), `${term}: ${text}`)
  }
  assert.is(await help('leases'), await help('lease'))
  assert.match(await help('session'), /resumed[\s\S]*\n\n {0,2}svc session <command>/)
  const nothing = await runCli('/', ['help', 'zzz'], { data, root: dist })
  assert.is(nothing.code, exitCodes.usage)
})

test('the exit statuses are the documented ones', () => {
  const documented = [...rules.matchAll(/^\| (\d+) \|/gm)].map(([, status]) => Number(status))
  assert.equal(documented, Object.values(exitCodes))
})

test.run()
