import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'

// How agent processes begin, and how they fail to.
let world: World

const SHORT = {
  session: {
    startup: { initialize_timeout: '10s', new_session_timeout: '10s' },
  },
}

test.before(async () => {
  world = await openWorld({ config: SHORT })
  await world.agent('plain')
})
test.after(() => world.close())

test('failed starts give the reason', async () => {
  const failing = async (name: string, flags: string, kind: string, text: RegExp, command?: string) => {
    await world.agent(name, { flags, ...(command && { command }) })
    const { id, at } = await world.session(name)
    const events = await world.prompt(at, 'say hello')
    assert.is(events.at(-1).type, 'error', name)
    assert.is(events.at(-1).failure.kind, kind, name)
    assert.match(events.at(-1).failure.summary, text)
    assert.equal([events[0].type, events[0].content.text], ['user_message', 'say hello'], 'what was answered stays')
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.state === 'stopped' && row
    }, `the stop of ${name}`)
    assert.is(row.stop_reason, 'error')
    assert.is(row.failure.kind, kind)
    return row
  }
  const early = failing('early', '--exit-at-start=4', 'startup_failure', /cannot find my configuration/)
  await Promise.all([
    early,
    failing('missing', '', 'startup_failure', /command not found/, 'svc-no-such-agent --acp'),
    failing('slow', '--slow-init=60000', 'handshake_failure', /initialize/),
    failing('slow-new', '--slow-new=60000', 'startup_failure', /session\/new/),
    failing('future', '--version=7', 'handshake_failure', /version 7/),
    failing('login', '--login', 'startup_failure', /requires a login/),
    failing('gone', '--exit-at-once=0', 'startup_failure', /ended with code 0/),
    failing('gone-wrong', '--exit-at-once=9', 'startup_failure', /ended with code 9/),
    failing(
      'mute',
      '--mute',
      'handshake_failure',
      /initialize: no answer within 10 s \(setting session\.startup\.initialize_timeout\)$/,
    ),
    failing('stopped', '--stop-at-start', 'handshake_failure', /stopped by a signal \(state T\)/),
    failing('text', '--initialize=42', 'handshake_failure', /not an object/),
    failing('no-id', '--new={}', 'startup_failure', /no sessionId/),
    failing('shell', '', 'startup_failure', /ended with code/, '/bin/sh -c true'),
    failing('cat', '', 'handshake_failure', /initialize/, '/bin/cat'),
  ])
  const row = await early
  const bundle = JSON.parse(await readFile(row.failure.crash_bundle_path, 'utf8'))
  assert.match(bundle.process.stderr_tail, /cannot find/)
  assert.match(bundle.process.argv.join(' '), /acp-agent\.mjs --exit-at-start=4/)
  assert.ok(
    world.kernel.log
      .map(line => JSON.stringify(line))
      .some(line => /an agent failed/.test(line) && /cannot find my configuration/.test(line)),
    'the log has it too',
  )
})

test('a session whose agent needs a login waits for it, and continues after it', async () => {
  for (const [name, more] of [
    ['at-start', ''],
    ['late', '--late-login'],
  ] as const) {
    const file = path.join(world.root, `login-${name}`)
    await world.agent(name, { flags: `--login-file=${file} ${more}` })
    const { at } = await world.session(name)
    for (const _ of ['once', 'again']) {
      const { type, failure } = (await world.prompt(at, 'say hello')).findLast(({ type }) => type === 'error') ?? {}
      assert.is(type, 'error', name)
      assert.match(failure.summary, 'the agent requires a login', name)
    }
    await writeFile(file, 'logged in')
    assert.match(agentText(await world.prompt(at, 'say hello')), 'hello', name)
  }
})

test('a session whose agent failed to start is restarted by the next prompt', async () => {
  await world.agent('later', { flags: '--login' })
  const { id, at } = await world.session('later')
  const stopped = () => eventually(async () => (await world.row(id)).state === 'stopped', 'the stop')
  for (const text of ['say one', 'say two']) {
    assert.match((await world.prompt(at, text)).at(-1).failure.summary, /requires a login/)
    await stopped()
  }
  const resume = await world.kernel.request('POST', `${at}/prompt`, {})
  assert.equal([resume.status, resume.body.code], [500, 'session_start_failed'])
  await world.agent('later', {})
  assert.is(agentText(await world.prompt(at, 'say three')), 'three\n')
  const row = await world.row(id)
  assert.equal([row.state, row.stop_reason, row.failure], ['active', undefined, undefined])
  assert.is((await world.kernel.request('POST', `${at}/stop`)).status, 204)
  const gone = await world.kernel.request('POST', `${at}/prompt`, { text: 'say four' })
  assert.equal([gone.status, gone.body.code], [409, 'session_stopped'], 'what a person stopped stays so')
})

test('a prompt during the stop of a failed session waits for it and restarts the session', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'child-apart deaf')
  const crashing = await world.kernel.request('POST', `${at}/prompt`, { text: 'exit 3' })
  await world.until(at, event => event.turn_id === crashing.body.prompt.new_turn_id && event.type === 'error')
  // Its process group needs a second to be gone: until then the session is being stopped.
  assert.is(agentText(await world.prompt(at, 'say back')), 'back\n')
})

test('an uncanceled turn of a dead agent has failed; a canceled one has not completed', async () => {
  const { id, at } = await world.session('plain')
  const end = async (text: string) => (await world.prompt(at, text)).at(-1)
  assert.equal((await end('cancel-self')).content.status, 'canceled', 'an agent may cancel by itself')
  assert.is((await end('exit-behind 9\ncancel-self')).failure?.kind, 'process_exit')
  await eventually(async () => (await world.row(id)).state === 'stopped', 'the stop')

  await world.agent('polite', { flags: '--cancel-as-end' })
  const other = await world.session('polite')
  const sent = await world.kernel.request('POST', `${other.at}/prompt`, { text: 'say begun\nhang' })
  const turn = sent.body.prompt.new_turn_id
  await world.until(other.at, event => event.type === 'agent_message')
  const { body } = await world.kernel.request('POST', `${other.at}/prompt/cancel`)
  assert.is(body.outcome, 'canceled')
  const done = await world.until(other.at, event => event.turn_id === turn && event.type === 'done')
  assert.is(done.content.status, 'canceled')
})

test('a failure gives the reason from the error data or its own line, and not from an older line', async () => {
  const summary = async (steps: readonly string[]) => {
    const { at } = await world.session('plain')
    return (await world.prompt(at, steps.join('\n'))).at(-1).failure.summary as string
  }
  const data = { details: 'the model answered 500: scripted failure', token: 'hunter2hunter2' }
  const reason = await summary([`error-with ${JSON.stringify({ code: -32603, message: 'Internal error', data })}`])
  assert.match(reason, /Internal error: the model answered 500: scripted failure \(-32603\)/)
  assert.not.match(reason, /hunter2/)
  const nested = { code: -32603, message: 'Internal error', data: { error: { message: 'context too long' } } }
  assert.match(await summary([`error-with ${JSON.stringify(nested)}`]), /context too long/)
  const node = [
    "stderr Error: Cannot find module 'left-pad'",
    'stderr     at load (node:internal)',
    'stderr Node.js v20.1.0',
  ]
  const crashed = await summary([...node, 'exit 1'])
  assert.match(crashed, /ended with code 1: Error: Cannot find module 'left-pad'/)
  assert.not.match(crashed, /Node\.js/)

  const { id, at } = await world.session('plain')
  const [, pid] = /pid (\d+)/.exec(agentText(await world.prompt(at, 'stderr error of an hour ago\npid'))) ?? []
  const prompted = world.prompt(at, 'hang')
  await eventually(async () => (await world.row(id)).badge === 'running', 'the turn')
  process.kill(Number(pid), 'SIGKILL')
  const killed = (await prompted).at(-1).failure.summary
  assert.match(killed, /ended by SIGKILL/)
  assert.not.match(killed, /an hour ago/)
})

test('a missing secret of an MCP server is named without its value', async () => {
  const attempt = async (name: string, reference: string, required = true) => {
    const folder = path.join(world.root, '.svc', 'agents', name)
    await mkdir(folder, { recursive: true })
    const command = `${process.execPath} ${path.resolve('test/fixtures/acp-agent.mjs')}`
    const server = `mcp_servers:\n  - name: db\n    command: db-server\n    required: ${required}\n    secret_env:\n      DB_TOKEN: '${reference}'`
    const head = `name: ${name}\npermissions: approve-all\ncommand: '${command}'\n${server}`
    await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nDo as told.\n`)
    const { at } = await world.session(name)
    const end = (await world.prompt(at, 'say hello')).at(-1)
    return { ...end, warnings: await world.events(at, '?type=runtime_warning') }
  }
  const absent = await attempt('with-vault', 'vault:mcp/global/db/env/TOKEN')
  assert.is(absent.failure.kind, 'startup_failure')
  assert.match(
    absent.failure.summary,
    /DB_TOKEN of the MCP server db .*vault:mcp\/global\/db\/env\/TOKEN.* nothing resolves vault/,
  )
  assert.match((await attempt('with-env', 'env:SVC_NOT_SET')).failure.summary, /no variable SVC_NOT_SET/)
  const plain = await attempt('with-secret', 'hunter2hunter2')
  assert.match(plain.failure.summary, /is not a .*reference/)
  assert.not.match(JSON.stringify(plain), /hunter2/)
  assert.is((await attempt('with-path', 'env:PATH', false)).type, 'done')
  const without = await attempt('without', 'env:SVC_NOT_SET', false)
  assert.is(without.type, 'done', 'a server that is not required costs itself')
  assert.match(JSON.stringify(without.warnings), /without the MCP server .*db.*no variable SVC_NOT_SET/)
})

test('a stop during the start ends process and start', async () => {
  await world.agent('late', { flags: '--slow-init=6000' })
  const { id, at } = await world.session('late')
  const sent = await world.kernel.request('POST', `${at}/prompt`, { text: 'say hello' })
  assert.is(sent.status, 200)
  assert.is((await world.kernel.request('POST', `${at}/stop`)).status, 204)
  const row = await world.row(id)
  assert.equal([row.state, row.stop_reason, row.failure], ['stopped', 'user_canceled', undefined])
  assert.equal(
    (await world.events(at)).map(event => event.type),
    ['user_message', 'done', 'session_stopped'],
  )
  const { subprocess_health: processes } = (await world.kernel.request('GET', '/api/status')).body
  assert.is(processes.unhealthy, 0)
})

test('an agent gets its environment, first prompt and mode', async () => {
  await world.agent('reader', { permissions: 'approve-reads' })
  const { id, at } = await world.session('reader', { model: 'small-1' })
  const events = await world.prompt(
    at,
    'env SVC_SESSION_ID\nenv SVC_AGENT\nenv SVC_MODEL\nenv SVC_PROVIDER\nenv SVC_HOME\necho',
  )
  const text = agentText(events)
  assert.match(text, new RegExp(`SVC_SESSION_ID=${id}\nSVC_AGENT=reader\nSVC_MODEL=small-1\nSVC_PROVIDER=local\n`))
  assert.match(text, /You are the agent reader/)
  assert.match(text, /You do what you are told/)
  assert.is(events[0].content.text.startsWith('env SVC_SESSION_ID'), true, 'the transcript has what the user wrote')
  assert.not.match(agentText(await world.prompt(at, 'echo')), /You are the agent/, 'it is told once')
})

test('an asking mode is chosen by name, never the mode plan, which neither asks nor runs', async () => {
  const chosen = async (name: string, permissions: string, modes: string) => {
    await world.agent(name, { permissions, flags: `--modes=${modes}` })
    const { at } = await world.session(name)
    return agentText(await world.prompt(at, 'mode')).trim()
  }
  assert.is(await chosen('planner', 'approve-reads', 'default,plan'), 'mode default')
  assert.is(await chosen('only-plan', 'deny-all', 'default,plan,autoEdit'), 'mode default')
  assert.is(await chosen('bypassing', 'approve-all', 'default,plan,bypassPermissions'), 'mode bypassPermissions')
  assert.is(await chosen('full', 'approve-all', 'default,agent,agent-full-access'), 'mode agent-full-access')
  assert.is(await chosen('reading', 'deny-all', 'agent,plan,read-only,full-access'), 'mode read-only')
  assert.is(await chosen('asking', 'approve-reads', 'default,read-only,ask'), 'mode ask')
})

test('a workspace with a missing folder refuses the prompt and changes nothing', async () => {
  const { id, at } = await world.session('plain')
  const plans = path.join(world.root, '.svc', 'agents', 'plain', 'AGENT.md')
  const text = await readFile(plans, 'utf8')
  const { writeFile, rm } = await import('node:fs/promises')
  await writeFile(plans, text.replace('name: plain', 'name: other'))
  const refused = await world.kernel.request('POST', `${at}/prompt`, { text: 'say hello' })
  assert.is(refused.status, 422)
  await rm(path.dirname(plans), { recursive: true })
  assert.is((await world.kernel.request('POST', `${at}/prompt`, { text: 'say hello' })).status, 404)
  assert.is((await world.row(id)).state, 'active')
  await mkdir(path.dirname(plans))
  await writeFile(plans, text)
  assert.is(agentText(await world.prompt(at, 'say hello')), 'hello\n')
})

test.run()
