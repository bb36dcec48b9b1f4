import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Clock, defineErrors, definePlugin, type Ids, surfaceOf } from '../../../../kernel/plugin.js'
import { Permissions } from '../../../../plugins/work/acp/requests/permissions.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World
const vetoes = new Set<string>()
const { vetoed } = defineErrors({ vetoed: { status: 403, message: 'not today' } })

/** A plugin that refuses what the test tells it to. */
class Veto {
  readonly seen: string[] = []
}
const { tap } = surfaceOf<Veto>()
const veto = definePlugin({
  name: 'test.veto',
  version: '1.0.0',
  requires: { sessions: Sessions },
  service: async () => Veto,
}).surface({
  taps: [
    tap(
      Sessions,
      sessions => sessions.permission,
      () => async request => (vetoes.has(request.title) ? vetoed() : undefined),
    ),
  ],
})

test.before(async () => {
  world = await openWorld({ plugins: [veto], config: { session: { permissions: { timeout: '6s' } } } })
  for (const mode of ['approve-all', 'approve-reads', 'deny-all']) await world.agent(mode, { permissions: mode })
  await writeFile(path.join(world.root, 'notes.txt'), 'one\ntwo\nthree\n')
})
test.after(() => world.close())

const option = (kind: string, optionId = kind) => ({ optionId, name: kind, kind })
const ask = (toolCall: object, kinds = ['reject_always', 'allow_always', 'reject_once', 'allow_once']) =>
  `ask ${JSON.stringify({ toolCall: { toolCallId: 'p1', ...toolCall }, options: kinds.map(kind => option(kind)) })}`
const call = (method: string, params: object) => `call ${method} ${JSON.stringify(params)}`

const git = { title: 'git log', kind: 'execute', rawInput: { command: 'git', args: ['--version'] } }
const runGit = call('terminal/create', { command: 'git', args: ['--version'] })

/** Begins a turn and answers each question it asks with the next decision; `more` is in the body of each answer. */
async function converse(at: string, text: string, decisions: readonly string[], more = {}): Promise<readonly Reply[]> {
  const sent = await world.kernel.request('POST', `${at}/prompt`, { text })
  const turn = sent.body.prompt.new_turn_id
  const answered = new Set<string>()
  for (const decision of decisions) {
    const question = await world.until(
      at,
      event =>
        event.turn_id === turn &&
        event.type === 'permission' &&
        event.content.status === 'pending' &&
        !answered.has(event.content.request_id),
    )
    const { request_id } = question.content
    answered.add(request_id)
    const reply = await world.kernel.request('POST', `${at}/approve`, { request_id, turn_id: turn, decision, ...more })
    assert.is(reply.status, 200, JSON.stringify(reply.body))
  }
  await world.until(at, event => event.turn_id === turn && (event.type === 'done' || event.type === 'error'))
  return world.events(at, `?turn_id=${turn}`)
}

test('approve-all: options are allowed by kind in any order; reads, writes and commands work', async () => {
  const { at } = await world.session('approve-all')
  const events = await world.prompt(
    at,
    [
      ask(git),
      ask(git, ['reject_once', 'allow_always']),
      ask(git, ['reject_once']),
      ask(git, []),
      runGit,
      'terminal terminal/wait_for_exit',
      'terminal terminal/output',
      'terminal terminal/release',
      'terminal terminal/output',
      call('fs/write_text_file', { path: path.join(world.root, 'made/by/agent.txt'), content: 'hi' }),
      call('fs/read_text_file', { path: path.join(world.root, 'notes.txt'), line: 2, limit: 1 }),
    ].join('\n'),
  )
  const lines = agentText(events).trim().split('\n')
  assert.equal(lines.slice(0, 4), [
    'answer: allow_once',
    'answer: allow_always',
    'answer: cancelled',
    'answer: cancelled',
  ])
  assert.match(lines[4]!, /^terminal\/create: \{"terminalId":"trm_/)
  assert.match(lines[5]!, /"exitCode":0/)
  assert.match(lines[6]!, /git version/, lines.join('\n'))
  assert.is(lines[7], 'terminal/release: {}')
  assert.match(lines[8]!, /no such terminal/)
  assert.is(lines[9], 'fs/write_text_file: {}')
  assert.is(lines[10], 'fs/read_text_file: {"content":"two\\n"}')
  assert.is(await readFile(path.join(world.root, 'made/by/agent.txt'), 'utf8'), 'hi')
})

test('a client without a person rejects with that reason', async () => {
  const { at } = await world.session('approve-reads')
  const target = path.join(world.root, 'unattended.txt')
  const write = call('fs/write_text_file', { path: target, content: 'x' })
  const events = await converse(at, `${write}\n${write}`, ['reject-once', 'allow-once'], { unattended: true })
  const lines = agentText(events).trim().split('\n')
  assert.is(lines[0], 'fs/write_text_file: error permission denied: nobody was there to answer')
  assert.is(lines[1], 'fs/write_text_file: {}', 'only a rejection has the reason')
  const resolved = events.filter(event => event.type === 'permission' && event.content.status === 'resolved')
  assert.equal(
    resolved.map(({ content }) => content.note),
    ['nobody was there to answer', undefined],
  )
})

test('approve-reads: reads are allowed, and writes and commands are asked', async () => {
  const { at } = await world.session('approve-reads')
  const target = path.join(world.root, 'unasked.txt')
  const events = await converse(
    at,
    [
      ask({ title: 'look', kind: 'read', locations: [{ path: path.join(world.root, 'notes.txt') }] }),
      call('fs/read_text_file', { path: path.join(world.root, 'notes.txt') }),
      call('fs/write_text_file', { path: target, content: 'x' }),
      runGit,
      call('fs/write_text_file', { path: target, content: 'asked\n' }),
    ].join('\n'),
    ['reject-once', 'reject-once', 'allow-once'],
  )
  const lines = agentText(events).trim().split('\n')
  assert.is(lines[0], 'answer: allow_once')
  assert.match(lines[1]!, /one\\ntwo/)
  assert.match(lines[2]!, /error permission denied: a person rejected it/)
  assert.match(lines[3]!, /error permission denied: a person rejected it/)
  assert.is(lines[4], 'fs/write_text_file: {}')
  assert.is(await readFile(target, 'utf8'), 'asked\n')
  const questions = events.filter(event => event.type === 'permission' && event.content.status === 'pending')
  assert.equal(
    questions.map(({ content }) => [content.kind, content.command, content.diffs?.[0].patch]),
    [
      ['edit', undefined, '@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file'],
      ['execute', 'git --version', undefined],
      ['edit', undefined, '@@ -0,0 +1,1 @@\n+asked'],
    ],
  )
})

test('an answered request allows exactly that action once', async () => {
  const { id, at } = await world.session('approve-reads')
  const target = path.join(world.root, 'report.md')
  const edit = { title: 'write', kind: 'edit', locations: [{ path: target }] }
  const events = await converse(
    at,
    [
      ask(git),
      call('terminal/create', { command: 'git', args: ['status'] }),
      runGit,
      runGit,
      ask(edit),
      call('fs/write_text_file', { path: path.join(world.root, 'other.md'), content: 'x' }),
      call('fs/write_text_file', { path: target, content: 'x' }),
      call('fs/write_text_file', { path: target, content: 'y' }),
    ].join('\n'),
    ['allow-once', 'reject-once', 'reject-once', 'allow-once', 'reject-once', 'reject-once'],
  )
  const lines = agentText(events).trim().split('\n')
  assert.is(lines[0], 'answer: allow_once')
  assert.match(lines[1]!, /error permission denied/, 'another command')
  assert.match(lines[2]!, /terminalId/)
  assert.match(lines[3]!, /error permission denied/, 'used up')
  assert.match(lines[5]!, /error permission denied/, 'another file')
  assert.is(lines[6], 'fs/write_text_file: {}')
  assert.match(lines[7]!, /error permission denied/, 'used up')
  assert.is(await readFile(target, 'utf8'), 'x')
  const [pending, resolved] = events.filter(event => event.type === 'permission')
  assert.is(pending.content.status, 'pending')
  assert.is(pending.content.command, 'git --version')
  assert.is(pending.content.kind, 'execute')
  assert.equal(
    pending.content.options.map((one: Reply) => one.kind),
    ['reject_always', 'allow_always', 'reject_once', 'allow_once'],
  )
  assert.is(resolved.content.decision, 'allow-once')
  assert.is(resolved.content.resolved_by, 'person')
  assert.equal((await world.row(id)).state, 'active')
})

test('a grant ends with its turn, "always" lasts for the session', async () => {
  const { at } = await world.session('approve-reads')
  await converse(at, ask(git), ['allow-once'])
  assert.match(agentText(await world.prompt(at, runGit)), /error permission denied/)
  await converse(at, ask(git), ['allow-always'])
  const later = agentText(await world.prompt(at, `${runGit}\n${runGit}\n${ask(git)}`))
  assert.not.match(later, /error/)
  assert.match(later, /answer: allow_always/, 'the same question is not asked again')
  await converse(at, ask({ title: 'rm', kind: 'delete' }), ['reject-always'])
  assert.match(agentText(await world.prompt(at, ask({ title: 'rm', kind: 'delete' }))), /answer: reject_always/)
})

test('a request is rejected once, also with unoffered options', async () => {
  const { at } = await world.session('approve-reads')
  assert.match(agentText(await converse(at, ask(git), ['reject-once'])), /answer: reject_once/)
  const sent = await world.kernel.request('POST', `${at}/prompt`, { text: ask(git, ['allow_always', 'reject_always']) })
  const question = await world.until(
    at,
    event => event.content.status === 'pending' && event.turn_id === sent.body.prompt.new_turn_id,
  )
  const { request_id } = question.content
  const approve = (body: object) =>
    world.kernel.request('POST', `${at}/approve`, { request_id, turn_id: question.turn_id, ...body })
  const refused = await approve({ decision: 'allow-once' })
  assert.is(refused.status, 400, 'once would become always')
  assert.is(refused.body.code, 'permission_not_offered')
  assert.is((await approve({ decision: 'maybe' })).status, 400)
  assert.is((await approve({ decision: 'allow-once', turn_id: 'trn_0' })).status, 404)
  assert.is((await approve({ decision: 'allow-once', request_id: 'per_0' })).status, 404)
  const other = await world.session('approve-reads')
  const foreign = { request_id, turn_id: question.turn_id, decision: 'allow-always' }
  assert.is((await world.kernel.request('POST', `${other.at}/approve`, foreign)).status, 404, 'without a process')
  await world.prompt(other.at, 'say x')
  assert.is((await world.kernel.request('POST', `${other.at}/approve`, foreign)).status, 404, 'of another session')
  assert.is((await approve({ decision: 'allow-always' })).body.status, 'allowed')
  assert.is((await approve({ decision: 'allow-always' })).status, 404, 'answered already')
})

test('an unanswered request is rejected once', async () => {
  const { at } = await world.session('approve-reads')
  const events = await world.prompt(at, ask(git))
  assert.match(agentText(events), /answer: reject_once/)
  assert.is(events.filter(event => event.type === 'permission').at(-1).content.resolved_by, 'timeout')
})

test('a cancel and a stop answer pending requests with cancelled', async () => {
  const { at } = await world.session('approve-reads')
  await world.kernel.request('POST', `${at}/prompt`, { text: ask(git) })
  await world.until(at, event => event.type === 'permission')
  assert.is((await world.kernel.request('POST', `${at}/prompt/cancel`)).body.outcome, 'canceled')
  const resolved = (await world.events(at)).filter(event => event.type === 'permission').at(-1)
  assert.is(resolved.content.decision, 'cancelled')
  await world.kernel.request('POST', `${at}/prompt`, { text: ask(git) })
  await world.until(at, event => event.content.status === 'pending' && event.sequence > resolved.sequence)
  await world.kernel.request('POST', `${at}/stop`)
  assert.is((await world.events(at)).filter(event => event.type === 'permission').at(-1).content.decision, 'cancelled')
})

test('deny-all reads nothing and asks nothing', async () => {
  const { at } = await world.session('deny-all')
  const events = await world.prompt(
    at,
    [ask({ title: 'look', kind: 'read' }), call('fs/read_text_file', { path: 'notes.txt' }), runGit].join('\n'),
  )
  const text = agentText(events)
  assert.match(text, /answer: reject_once/)
  assert.match(text, /error permission denied: reading/)
  assert.match(text, /error permission denied: running/)
})

test('the gate is called before a grant by mode and before a question', async () => {
  const everything = await world.session('approve-all')
  vetoes.add('forbidden').add(`write ${path.join(world.root, 'veto.txt')}`)
  const events = await world.prompt(
    everything.at,
    [
      ask({ title: 'forbidden', kind: 'execute' }),
      call('fs/write_text_file', { path: path.join(world.root, 'veto.txt'), content: 'x' }),
    ].join('\n'),
  )
  assert.match(agentText(events), /answer: reject_once/)
  assert.match(agentText(events), /error permission denied: not today/)
  const session = await world.session('approve-reads')
  const refused = await world.prompt(session.at, ask({ title: 'forbidden', kind: 'execute' }))
  assert.match(agentText(refused), /answer: reject_once/)
  const reports = refused.filter(event => event.type === 'permission').map(({ content }) => content)
  assert.equal(
    reports.map(({ status, resolved_by }) => [status, resolved_by]),
    [['resolved', 'hook']],
  )
})

test('approve-all: outside paths are read, and written with permission; daemon files never', async () => {
  const outside = path.join(world.home, '..', 'svc-outside.txt')
  await writeFile(outside, 'secret')
  await mkdir(path.join(world.root, 'inside'), { recursive: true })
  await symlink(outside, path.join(world.root, 'inside', 'link')).catch(() => {})
  await symlink('/tmp/svc-does-not-exist/file', path.join(world.root, 'inside', 'dangling')).catch(() => {})
  await symlink(path.dirname(outside), path.join(world.root, 'inside', 'folder')).catch(() => {})
  const { at } = await world.session('approve-all', { sandbox: 'none' })
  const read = (file: string) => call('fs/read_text_file', { path: file })
  const write = (file: string) => call('fs/write_text_file', { path: file, content: 'x' })
  const events = await converse(
    at,
    [
      read(outside),
      read(`${world.root}/../${path.basename(outside)}`),
      read(path.join(world.root, 'inside/link')),
      read(path.join(world.root, 'inside/folder', path.basename(outside))),
      write(path.join(world.root, 'inside/folder/new/deep/file.txt')),
      write(path.join(world.root, 'inside/dangling')),
      read(path.join(world.home, 'svc.db')),
      call('terminal/create', { command: 'ls', cwd: '/' }),
      ask({ title: 'edit', kind: 'edit', locations: [{ path: outside }] }),
      read(''),
      read(`${world.root}/notes.txt\u0000`),
      read(`${world.root}/notes.txt/deeper`),
      read(`${world.root}/inside`),
      read(`${world.root}/absent.txt`),
    ].join('\n'),
    ['reject-once', 'reject-once', 'reject-once'],
  )
  const lines = agentText(events).trim().split('\n')
  for (const line of lines.slice(0, 4)) assert.is(line, 'fs/read_text_file: {"content":"secret"}')
  for (const line of lines.slice(4, 8)) assert.match(line, /error permission denied/, line)
  const questions = events.filter(event => event.type === 'permission' && event.content.status === 'pending')
  const target = path.join(await realpath(path.dirname(outside)), 'new/deep/file.txt')
  assert.equal(
    questions.map(({ content }) => content.outside),
    [[target], ['/'], [await realpath(outside)]],
  )
  assert.is(lines[8], 'answer: reject_once')
  for (const line of lines.slice(9, 12)) assert.match(line, /error permission denied/, line)
  assert.match(lines[12]!, /not a regular file|EISDIR/)
  assert.match(lines[13]!, /Resource not found/)
  await rm(outside)
})

test('terminals: arguments pass no shell, output is cut at its start, kill and release end it', async () => {
  const { at } = await world.session('approve-all')
  const events = await world.prompt(
    at,
    [
      call('terminal/create', { command: 'echo', args: ['$HOME; ls'] }),
      'terminal terminal/wait_for_exit',
      'terminal terminal/output',
      call('terminal/create', {
        command: 'node',
        args: ['-e', 'process.stdout.write("ä".repeat(50) + "end")'],
        outputByteLimit: 10,
      }),
      'terminal terminal/wait_for_exit',
      'terminal terminal/output',
      call('terminal/create', { command: 'sleep', args: ['100'] }),
      'terminal terminal/kill',
      'terminal terminal/wait_for_exit',
      'terminal terminal/release',
      call('terminal/create', { command: 'no-such-command-xyz' }),
      call('terminal/create', {
        command: 'env',
        env: [
          { name: 'MINE', value: '1' },
          { name: 'SVC_SESSION_ID', value: 'x' },
        ],
      }),
      'terminal terminal/wait_for_exit',
      'terminal terminal/output',
      call('terminal/create', { args: 5 }),
    ].join('\n'),
  )
  const lines = agentText(events).trim().split('\n')
  assert.match(lines[2]!, /"\$HOME; ls\\n"/)
  assert.match(lines[5]!, /"output":"äääend","truncated":true/)
  assert.match(lines[8]!, /"signal":"SIGKILL"/)
  assert.match(lines[10]!, /error .*command not found/)
  assert.match(lines[13]!, /MINE=1/)
  assert.not.match(lines[13]!, /SVC_SESSION_ID=x/)
  assert.match(lines[14]!, /error/)
})

test('a command line without arguments runs in a shell; a program with a blank in its name is a program', async () => {
  await mkdir(path.join(world.root, 'my tools'), { recursive: true })
  await writeFile(path.join(world.root, 'my tools', 'hello'), '#!/bin/sh\necho hello from "$0"\n', { mode: 0o755 })
  const run = (params: object) => [
    call('terminal/create', params),
    'terminal terminal/wait_for_exit',
    'terminal terminal/output',
  ]
  const lines = async (mode: string, steps: readonly string[]) => {
    const { at } = await world.session(mode)
    return agentText(await world.prompt(at, steps.join('\n')))
      .trim()
      .split('\n')
  }
  const free = await lines('approve-all', [
    ...run({ command: 'echo one && echo two | tr o 0' }),
    ...run({ command: './my tools/hello' }),
    ...run({ command: 'echo', args: ['a && b'] }),
    call('terminal/create', { command: 'no-such-command-xyz' }),
  ])
  assert.match(free[2]!, /"output":"one\\ntw0\\n"/)
  assert.match(free[5]!, /hello from/)
  assert.match(free[8]!, /"output":"a && b\\n"/)
  assert.match(free[9]!, /error .*command not found/)
  const denied = await lines('deny-all', [call('terminal/create', { command: 'touch not-allowed' })])
  assert.match(denied[0]!, /permission denied/)
  assert.is(existsSync(path.join(world.root, 'not-allowed')), false)
})

test('a request whose turn ended during the check is canceled without waiting', async () => {
  let turn: string | undefined = 'trn_1'
  const recorded: unknown[] = []
  const permissions = new Permissions({
    mode: 'approve-reads',
    territory: { roots: [world.root], forbidden: world.home },
    clock: { now: () => 0, monotonic: () => 0, timeout: () => ({ cancel() {} }) } as unknown as Clock,
    ids: { id: (prefix: string) => `${prefix}_1` } as Ids,
    timeoutMs: 1000,
    turnId: () => turn,
    isAttended: () => true,
    known: () => undefined,
    gate: async ({ toolKind }) => ({ judgedAs: toolKind, isAllowed: false }),
    record: (_turn, content) => recorded.push(content),
    warn: () => {},
  })
  const request = permissions.request(
    { toolCall: { toolCallId: 'c', title: 'rm', kind: 'delete' } as never, options: [option('allow_once')] },
    new AbortController().signal,
  )
  permissions.endTurn()
  turn = 'trn_2'
  assert.equal(await request, { outcome: { outcome: 'cancelled' } })
  assert.equal([permissions.pending, recorded], [[], []])
})

test.run()
