// proof, timeout: 240s: whole daemons, started by the command itself
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed } from './installed.js'

const TERMINAL = fileURLToPath(new URL('../fixtures/terminal.py', import.meta.url))
const SVC = fileURLToPath(new URL('../../dist/bin/svc', import.meta.url))
const AGENT = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))

const at = new Installed()
/** Nothing that is installed on this machine is found. */
const bare = { PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin` }
let repository = ''

test.before(() => {
  repository = at.makeRepository('project')
  const folder = path.join(at.home, 'agents', 'asks')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'AGENT.md'), `---\nname: asks\ncommand: '${process.execPath} ${AGENT}'\n---\nAsk.\n`)
})
test.after(() => at.remove())

/** The command on a terminal; `type` is called with what was shown so far whenever something comes. */
async function onTerminal(args: readonly string[], type: (shown: string) => string | undefined, cwd = repository) {
  const child = spawn('python3', [TERMINAL, process.execPath, SVC, ...args], {
    cwd,
    env: { ...at.env, ...bare, TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    shown += text
    const typed = type(shown)
    // An answer that comes at once is taken for one that nobody can have meant.
    if (typed !== undefined) setTimeout(() => child.stdin.write(typed), 400)
  })
  const code = await new Promise<number | null>(resolve => child.once('close', resolve))
  return { code, shown }
}

/** Types each line once its pattern was shown, in order. */
function typing(...steps: readonly (readonly [RegExp, string])[]) {
  let next = 0
  let from = 0
  return (shown: string) => {
    const [pattern, line] = steps[next] ?? []
    const found = pattern?.exec(shown.slice(from))
    if (!found) return undefined
    from += found.index + found[0].length
    next++
    return line
  }
}

test('without an agent the error names one to install and the one in the package', async () => {
  const { code, stderr } = await at.run(['run', 'Report'], repository, bare)
  assert.is(code, 1)
  assert.match(stderr, /no agent is installed. Install one: npm install -g/)
  assert.match(stderr, /next: svc run --agent report/)
})

test('a run on a terminal from an empty home finishes a task, with its questions and the changes on disk', async () => {
  await at.svc('daemon', 'stop')
  const answers = typing(
    [/Run it now\? \[Y\/n\] /, '\r'],
    [/\? run: git.*?instead: /s, 'y'],
    [/\+# Workspace report.*?instead: /s, 'y'],
  )
  const { code, shown } = await onTerminal(['run', 'Report'], answers)
  assert.is(code, 0, shown)
  assert.match(shown, /started the daemon \(pid \d+\)/)
  assert.match(shown, /report in .*project.*permissions.*approve-reads.*ses_/s)
  assert.match(shown, /\? edit: write .*svc-reports\/report\.md.*\+# Workspace report/s)
  assert.match(shown, /1 file changed:.*\+ svc-reports\/report\.md/s)
  assert.match(shown, /Continue: svc session attach ses_/)
  assert.ok(existsSync(path.join(repository, 'svc-reports', 'report.md')))
})

test('a run without a terminal does not wait: a question is rejected with an exit code or pre-approved', async () => {
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind }))
  const ask = `ask ${JSON.stringify({ toolCall: { toolCallId: 'c', kind: 'execute', title: 'ls', rawInput: { command: 'ls' } }, options })}`
  const denied = await at.run(['run', '--agent', 'asks', ask], repository)
  assert.is(denied.code, 9, denied.stderr)
  assert.match(denied.stdout, /\? run: ls\n {2}Rejected: no one is available to answer\./)
  assert.match(denied.stdout, /answer: reject_once/)
  assert.match(denied.stdout, /No file changed/)
  const doctor = await at.run(['doctor', '--only', 'sandboxes', '--json'], repository)
  const hasSandbox = JSON.parse(doctor.stdout).items[0].code === 'sandbox_ok'
  const allowing = `--permissions approve-all${hasSandbox ? '' : ' --sandbox none'}`
  const hint = `rejected, because no one can be asked. To allow them: ${allowing}\n`
  assert.match(denied.stdout, hint)
  assert.match((await at.run(['run', '--print', '--agent', 'asks', ask], repository)).stderr, hint)
  const allowed = await at.run(['run', '--agent', 'asks', '--permissions', 'approve-all', ask], repository)
  assert.is(allowed.code, 0, allowed.stderr)
  assert.match(allowed.stdout, /answer: allow_once/)
  const failed = await at.run(['run', '--agent', 'asks', 'error -32000 no more credit'], repository)
  assert.is(failed.code, 1)
  assert.match(failed.stdout, /✗ the agent refused the prompt: .*no more credit/)
  assert.is((await at.run(['run', '--agent', 'nobody', 'x'], repository)).code, 4)
  assert.is((await at.run(['run', ' '], repository)).code, 2)
})

test('programs get one line of JSON per event, with the end last', async () => {
  const { code, stdout } = await at.run(['run', '--agent', 'asks', '--json', 'say hello'], repository)
  assert.is(code, 0)
  const rows = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(
    rows.map(({ type }) => type),
    ['run_started', 'user_message', 'agent_message', 'done', 'run_ended'],
  )
  assert.match(rows[0].session_id, /^ses_/)
  assert.equal([rows[4].status, rows[4].exit_code, rows[4].changes], ['completed', 0, []])
})

test('Ctrl-C cancels the turn, a second one detaches, and the agent continues', async () => {
  const canceled = await onTerminal(['run', '--agent', 'asks', 'say begun\nhang'], typing([/begun/, '\x03']))
  assert.is(canceled.code, 130, canceled.shown)
  assert.match(canceled.shown, /Canceling….*— canceled/s)
  const steps = typing([/begun/, '\x03'], [/Canceling…/, '\x03'])
  const detached = await onTerminal(['run', '--agent', 'asks', 'say begun\nhang deaf'], steps)
  assert.is(detached.code, 10, detached.shown)
  const [, id = ''] = /Detached; the agent goes on: svc session attach (ses_\w+)/.exec(detached.shown) ?? []
  const { session } = await at.json<{ session: { state: string } }>('session', 'info', id)
  assert.is(session.state, 'active')
  await at.svc('session', 'stop', id)
})

test('model, permission mode and answers are typed as commands, and /help lists them', async () => {
  const made = await at.run(['session', 'new', '--agent', 'asks'], repository)
  const [, id = ''] = /(ses_\w+)/.exec(made.stdout) ?? []
  const steps = typing(
    [/Ctrl-D leaves/, '/help\r'],
    [/Everything else is a prompt/, '/mode deny-all\r'],
    [/permissions: deny-all/, '/model\r'],
    [/model: the default of/, '/answer yes\r'],
    [/the agent has no open question/, '/quit\r'],
  )
  const attached = await onTerminal(['session', 'attach', id], steps)
  assert.is(attached.code, 0, attached.shown)
  for (const word of ['/cancel', '/model', '/mode', '/answer', '/quit']) assert.match(attached.shown, `${word} `)
  assert.match(attached.shown, /the agent has no open question/)
  const { session } = await at.json<{ session: { permissions: string } }>('session', 'info', id)
  assert.is(session.permissions, 'deny-all')
  await at.svc('session', 'stop', id)
})

test('commands typed into a run are not sent to the agent', async () => {
  const steps = typing(
    [/begun/, '/help\r'],
    [/Everything else is a prompt/, '/mode deny-all\r'],
    [/permissions: deny-all/, '/answer yes\r'],
    [/the agent has no open question/, '/cancel\r'],
  )
  const { code, shown } = await onTerminal(['run', '--agent', 'asks', 'say begun\nhang'], steps)
  assert.is(code, 130, shown)
  assert.not.match(shown, 'Queued')
})

test('files are attached to a prompt, and a path that is no file is refused before the start', async () => {
  writeFileSync(path.join(repository, 'notes.md'), '# Notes\n')
  writeFileSync(path.join(repository, 'odd "name".bin'), 'plain text')
  mkdirSync(path.join(repository, 'folder'), { recursive: true })
  writeFileSync(path.join(repository, 'zeros'), Buffer.alloc(10))
  const say = ['run', '--agent', 'asks', '--json']
  const sent = await at.run([...say, '--attach', 'notes.md', '--attach', 'odd "name".bin', 'say seen'], repository)
  assert.is(sent.code, 0, sent.stderr)
  const rows = sent.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  const message = rows.find(({ type }) => type === 'user_message')
  assert.equal(
    message.content.attachments.map(({ name, mime_type }: Record<string, string>) => [name, mime_type]),
    [
      ['notes.md', 'text/markdown'],
      ['odd "name".bin', 'text/plain'],
    ],
    JSON.stringify(message),
  )
  const before = await at.json<{ sessions: unknown[] }>('session', 'list')
  for (const [file, code, words] of [
    ['folder', 2, /--attach folder: it is not a regular file/],
    ['missing.md', 4, /--attach missing.md: there is no such file/],
    ['zeros', 2, /--attach zeros: it is not a text, image, audio or PDF file/],
  ] as const) {
    const refused = await at.run(['run', '--agent', 'asks', '--attach', file, 'say x'], repository)
    assert.is(refused.code, code, refused.stderr)
    assert.match(refused.stderr, words)
  }
  const many = Array.from({ length: 11 }, () => ['--attach', 'notes.md']).flat()
  assert.match((await at.run(['run', ...many, 'say x'], repository)).stderr, /at most 10 files/)
  assert.match((await at.run(['session', 'new', '--attach', 'notes.md'], repository)).stderr, /--attach needs --prompt/)
  assert.is((await at.json<{ sessions: unknown[] }>('session', 'list')).sessions.length, before.sessions.length)

  const first = ['--attach', 'notes.md', '--prompt', 'say first']
  const creation = await at.run(['session', 'new', '--agent', 'asks', ...first], repository)
  assert.is(creation.code, 0, creation.stderr)
  const [, id = ''] = /(ses_\w+)/.exec(creation.stdout) ?? []
  const prompted = await at.run(['session', 'prompt', id, '--attach', 'notes.md', 'say second'], repository)
  assert.is(prompted.code, 0, prompted.stderr)
  const { events } = await at.json<{ events: { content: { attachments?: unknown[] } }[] }>(
    ...['session', 'events', id, '--type', 'user_message'],
  )
  assert.equal(
    events.map(({ content }) => content.attachments?.length),
    [1, 1],
  )
  await at.svc('session', 'stop', id)
})

test('an unusual working folder is confirmed before an agent works in it', async () => {
  const home = path.join(at.folder, 'user')
  const { code, shown } = await onTerminal(['run', '--agent', 'report', 'Report'], typing([/\[y\/N\] /, '\r']), home)
  assert.is(code, 1, shown)
  assert.match(shown, /is your home: agents would work in all of it/)
  const { workspaces } = await at.json<{ workspaces: { root_dir: string }[] }>('workspace', 'list')
  assert.not.ok(workspaces.some(({ root_dir }) => root_dir === home))
})

test('a path within a workspace selects that workspace and registers nothing', async () => {
  const below = path.join(repository, 'deep')
  mkdirSync(below, { recursive: true })
  const task = ['run', '--workspace', below, '--agent', 'report', '--permissions', 'approve-all', 'Report']
  const { code, stdout } = await at.run(task, '/', bare)
  assert.is(code, 0, stdout)
  assert.not.match(stdout, 'registered')
})

test.run()
