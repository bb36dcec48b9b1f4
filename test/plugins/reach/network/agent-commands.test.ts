import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runCli } from '../../../cli/fake-daemon.js'
import { data, dist } from '../../../cli/tree.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openAgents } from './agent-scene.js'

type Agents = Awaited<ReturnType<typeof openAgents>>
const test = suite<{ scene: Agents }>('agent network commands')
test.before(async context => {
  context.scene = await openAgents({ agents: ['ada', 'bob', 'cid', 'dan', 'eve'] })
})
test.after(({ scene }) => scene.close())

type Options = Parameters<typeof runCli>[2]
/** Runs a command as the agent of a session does: its socket and session are in the environment. */
async function asAgent(scene: Agents, name: string, argv: readonly string[], options: Options = {}) {
  const { socketPath } = await scene.agent(name)
  const env = { SVC_SOCKET: socketPath, SVC_SESSION_ID: scene.peer(name).session_id }
  return runCli(scene.home, argv, { data, root: dist, env, ...options })
}
const asPerson = (scene: Agents, argv: readonly string[], options: Options = {}) =>
  runCli(scene.home, argv, { data, root: dist, cwd: scene.root, ...options })

/** The words of a command line without anything but quotes. */
const wordsOf = (line: string) => (line.match(/'[^']*'|\S+/g) ?? []).map(word => word.replace(/^'(.*)'$/, '$1'))

test('a message that wakes more than 3 sessions asks the user, and an agent cannot allow it', async ({ scene }) => {
  const { session_id: session } = scene.peer('ada')
  const send = ['network', 'send', 'team', 'say all', '--mention', 'channel', '--session', session, '--workspace']
  const argv = [...send, scene.workspaceId]
  const silent = await asPerson(scene, argv)
  assert.is.not(silent.code, 0)
  assert.match(silent.stderr, 'wake_confirmation_required')
  const refused = await asPerson(scene, argv, { typed: ['n'] })
  assert.equal([refused.code, /not_sent/.test(refused.stderr)], [1, true])
  const agent = await asAgent(scene, 'ada', ['network', 'send', 'team', 'x', '--mention', 'channel', '--confirm-wakes'])
  assert.match(agent.stderr, 'wake_confirmation_required')
  const { body: before } = await scene.request('GET', '/channels/team')
  const agreed = await asPerson(scene, argv, { typed: ['y'] })
  assert.is(agreed.code, 0, agreed.stderr)
  const confirmed = await asPerson(scene, [...argv, '--confirm-wakes'])
  assert.is(confirmed.code, 0, confirmed.stderr)
  const { body: after } = await scene.request('GET', '/channels/team')
  assert.is(after.channel.message_count - before.channel.message_count, 2)
  const nobody = await asPerson(scene, ['network', 'send', 'team', 'x', '--workspace', scene.workspaceId])
  assert.is(nobody.code, 2)
  assert.match(nobody.stderr, 'svc network send team x --session <id>')
  const shown = await asPerson(scene, ['network', 'channels', 'show', 'team', '--workspace', scene.workspaceId])
  assert.match(shown.stdout, session, 'a channel is shown with its peers')
})

test('a woken agent answers with the command from its prompt', async ({ scene }) => {
  const { thread_id: thread } = await scene.say('ada', 'say yes', { to: 'bob' })
  const promptWith = (name: string, text: string) =>
    eventually(async () => (await scene.prompts(name)).find(prompt => prompt.includes(text)), `${name} reads ${text}`)
  const prompt = await promptWith('bob', 'say yes')
  const [, line = ''] = /^ +svc (network send .*)$/m.exec(prompt.slice(prompt.indexOf('say yes'))) ?? []
  const { code, stdout, stderr } = await asAgent(scene, 'bob', wordsOf(line.replace('<text>', 'say well')))
  assert.is(code, 0, stderr)
  assert.match(stdout, new RegExp(`^sent msg_\\w+ to team \\(${thread}\\)\n$`))
  await promptWith('ada', 'say well')
})

test('an agent sends, receives and answers in its channels, and received messages are not repeated', async ({
  scene,
}) => {
  const listed = await asAgent(scene, 'cid', ['ch', 'list'])
  assert.match(listed.stdout, /^team /m)
  const sent = await asAgent(scene, 'cid', ['ch', 'send', 'team', 'half of it', '--correlation', 'r1', '--json'])
  assert.is(sent.code, 0, sent.stderr)
  const { message } = JSON.parse(sent.stdout)
  assert.equal([message.body, message.metadata.message_kind], ['half of it', 'status'])
  const got = await asAgent(scene, 'dan', ['ch', 'recv', 'team', '--json'])
  const found = JSON.parse(got.stdout).messages.find((one: Reply) => one.message_id === message.message_id)
  assert.equal(found, message)
  assert.is((await asAgent(scene, 'dan', ['ch', 'recv', 'team'])).stdout, 'no message waits\n')
  const answered = await asAgent(scene, 'dan', ['ch', 'reply', message.message_id, 'say good'])
  assert.is(answered.code, 0, answered.stderr)
  const human = await asAgent(scene, 'eve', ['ch', 'recv', 'team', '--limit', '1'])
  assert.match(human.stdout, /^msg_\w+ {2}\w+ from ses_\w+\n/)
  const wrong = await asAgent(scene, 'cid', ['ch', 'send', 'team', 'x', '--kind', 'gossip'])
  assert.is(wrong.code, 2)
  assert.match((await asAgent(scene, 'cid', ['ch', 'send', 'team', ' '])).stderr, 'the text of the message is missing')
})

test('an agent reads its inbox without naming its session', async ({ scene }) => {
  const { id } = await scene.say('ada', 'for all', { thread_id: 'thread_inbox' })
  const { code, stdout, stderr } = await asAgent(scene, 'eve', ['network', 'inbox', '--json'])
  assert.is(code, 0, stderr)
  assert.ok(JSON.parse(stdout).messages.some((one: Reply) => one.id === id))
})

test('a followed channel is printed as a table that fits the terminal', async ({ scene }) => {
  const over = new AbortController()
  let shown = ''
  const text = 'a text that is so long that it does not stand in one line of a terminal that has 80 columns'
  await scene.say('bob', text, { to: 'cid' })
  const ran = asPerson(scene, ['network', 'watch', 'team', '--recent', '1', '--workspace', scene.workspaceId], {
    signal: over.signal,
    columns: 80,
    tty: true,
    env: { NO_COLOR: '1' },
    onOutput: more => {
      shown += more
    },
  })
  const has = (what: RegExp) => eventually(async () => what.test(shown), `${what} in ${JSON.stringify(shown)}`)
  await has(/^TIME +FROM +TO +MESSAGE\n\d\d:\d\d:\d\d +bob +cid +a text that is so long/m)
  await scene.say('cid', 'and this one comes later')
  await has(/^\d\d:\d\d:\d\d +cid +- +and this one comes later$/m)
  over.abort()
  await ran
  for (const line of shown.split('\n')) assert.ok(line.length <= 80, line)
})

test('senders and followers learn which peers a message does not wake, with the reason', async ({ scene }) => {
  const bounds = { max_wakes: 1, coalesce_window: '100ms' }
  const made = await scene.kernel.request('POST', '/api/sessions', {
    ...{ workspace: scene.workspaceId, agent_name: 'eve' },
    network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'spent', bounds },
  })
  assert.is(made.status, 201, JSON.stringify(made.body))
  const { id } = made.body.session
  const other = await scene.kernel.request('POST', '/api/sessions', {
    ...{ workspace: scene.workspaceId, agent_name: 'dan' },
    network_participation: { mode: 'live', channel_strategy: 'named', channel_id: 'spent' },
  })
  const to = ['--to', `eve.${id}`, '--session', other.body.session.id, '--workspace', scene.workspaceId]
  const send = (...more: string[]) => asPerson(scene, ['network', 'send', 'spent', 'say x', ...to, ...more])
  assert.not.match((await send()).stdout, 'not woken')
  await eventually(async () => {
    const { details } = await scene.usage(`?owner_kind=session&owner_id=${id}`)
    return details[0]?.settled_at
  }, 'the end of the wake')
  const { stdout, stderr } = await send()
  assert.match(stdout, new RegExp(`\\neve\\.${id} is not woken: its budget is spent`), stderr)
  const message = JSON.parse((await send('--json')).stdout).message
  assert.equal(message.not_woken, [{ peer_id: `eve.${id}`, reason: 'budget_exhausted', session_id: id }])
  const work = ['--work', 'w1', '--kind', 'trace', '--body', '{"state":"completed","message":"made"}']
  const reply = await send('--work', 'w1', '--thread', 'thread_work')
  assert.is(reply.code, 0, reply.stderr)
  const argv = ['network', 'send', 'spent', ...to, ...work, '--thread', 'thread_work']
  const ended = await asPerson(scene, argv)
  assert.is(ended.code, 0, ended.stderr)
  const over = new AbortController()
  let shown = ''
  const ran = asPerson(scene, ['network', 'watch', 'spent', '--workspace', scene.workspaceId], {
    signal: over.signal,
    columns: 80,
    tty: true,
    env: { NO_COLOR: '1' },
    onOutput: more => {
      shown += more
    },
  })
  await eventually(async () => shown.includes('made'), `all of it in ${JSON.stringify(shown)}`)
  over.abort()
  await ran
  assert.match(shown, /^\d\d:\d\d:\d\d {2}dan {10}eve {10}\[w1 completed\] made$/m)
  assert.match(shown, /^ {36}eve is not woken: its budget is spent$/m)
  for (const line of shown.split('\n')) assert.ok(line.length <= 80 && line === line.trimEnd(), line)
})

test.run()
