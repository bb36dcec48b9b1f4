// proof, timeout: 180s: the built program on real terminals
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { shellsOf } from '../../../fixtures/shell.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('asks', { permissions: 'approve-reads' })
})
test.after(() => world.close())

const Shell = shellsOf(() => world.home)

const ask = (kind: string, title: string, rawInput: object = {}) =>
  `ask ${JSON.stringify({
    toolCall: { toolCallId: title, title, kind, rawInput },
    options: ['allow_once', 'reject_once'].map(one => ({ optionId: one, name: one, kind: one })),
  })}`
const ends = (at: string) => world.until(at, event => event.type === 'done' || event.type === 'error')
const turnRuns = (at: string) => world.until(at, (event: Reply) => event.type === 'agent_message')

test('a prompt shows events, asks, and ends with the turn; agent output does not control the terminal', async () => {
  const { id } = await world.session('asks')
  const evil =
    'update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\\u001b]0;evil\\u0007b\\u001b[2Jc"}}'
  const forged = ask('execute', 'ls\n? run: harmless', { command: 'rm\n? run: harmless' })
  const shell = Shell.terminal('session', 'prompt', id, `say hello\nthink hm\n${evil}\n${forged}\nsay over`)
  await shell.answers(
    /\? run: 2 lines.* {4}rm\r\n.* {4}\? run: harmless\r\n.*Allow\? \[y\] once {2}\[a\] this session {2}\[n\] no {2}\[v\] never {2}\[i\] instead: /s,
    'm',
  )
  await shell.answers(/Press one of y, a, n, v, i, s\./, 'y')
  assert.is(await shell.ended, 0, shell.text)
  assert.match(shell.text, /hello\r\n/)
  assert.match(shell.text, /abc/)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours and what draws the line below the stream may be there
  const plain = shell.text.replace(/\x1b\[(?:\d+m|\d*[AGDJK]|0J)/g, '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no agent may send to a terminal
  assert.not.match(plain, /\x1b(?!\[\?2004)|\x07/)
  assert.match(plain, /[\r\n]\? run: 2 lines/)
  assert.not.match(plain, /[\r\n]\? run: harmless/, 'a line of a command does not look like a question')
  assert.not.match(shell.text, 'evil')
  assert.match(shell.text, /answer:.*allow_once/s)
  assert.match(shell.text, /over.*— done/s)
})

test('Ctrl-C cancels only the turn; a second one leaves an unresponsive agent', async () => {
  const { id, at } = await world.session('asks')
  const shell = Shell.terminal('session', 'prompt', id, 'say begun\nhang')
  await shell.shows(/begun/)
  shell.type('\x03')
  assert.is(await shell.ended, 130, shell.text)
  assert.match(shell.text, /Canceling….*— canceled/s)
  assert.is((await world.row(id)).state, 'active')
  const deaf = Shell.terminal('session', 'prompt', id, 'say again\nhang deaf')
  await deaf.shows(/again/)
  deaf.type('\x03')
  await deaf.shows(/Canceling…/)
  deaf.type('\x03')
  assert.is(await deaf.ended, 130, deaf.text)
  assert.ok((await world.row(id)).activity, 'its turn is still there')
  await world.kernel.request('POST', `${at}/stop`)
})

test('SIGTERM leaves the terminal as it was', async () => {
  const { id, at } = await world.session('asks')
  const shell = Shell.terminal('session', 'prompt', id, 'say begun\nhang')
  await shell.shows(/begun/)
  shell.signal('SIGTERM')
  assert.is(await shell.ended, 143, shell.text)
  assert.ok(shell.text.lastIndexOf('\x1b[?2004l') > shell.text.lastIndexOf('\x1b[?2004h'), shell.text)
  await world.kernel.request('POST', `${at}/stop`)
})

test('Ctrl-C removes a queued prompt, and the running turn continues', async () => {
  const { id, at } = await world.session('asks')
  await world.kernel.request('POST', `${at}/prompt`, { text: 'say first\nhang' })
  await turnRuns(at)
  const shell = Shell.terminal('session', 'prompt', id, 'say second')
  await shell.shows(/Queued \(1st\)/)
  shell.type('\x03')
  assert.is(await shell.ended, 130, shell.text)
  assert.ok((await world.row(id)).activity, 'the first one runs')
  assert.equal((await world.kernel.request('GET', `${at}/prompt/queue`)).body.inputs, [])
  const dropped = Shell.pipe('session', 'prompt', id, 'say third')
  await dropped.shows(/Queued \(1st\)/)
  await world.kernel.request('POST', `${at}/prompt`, { text: 'say last', mode: 'interrupt' })
  assert.is(await dropped.ended, 1, 'somebody else interrupted')
  await world.until(at, event => event.content.text === 'last\n')
})

test('attached terminals accept prompts and answers; Ctrl-D leaves the session unchanged', async () => {
  const { id, at } = await world.session('asks')
  await world.prompt(at, 'say before')
  const shell = Shell.terminal('session', 'attach', id)
  await shell.shows(/attached to ses_.*before.*— done/s)
  shell.type(`say typed\r`)
  await shell.shows(/typed\r\n.*— done/s)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colour of what was typed
  assert.is(shell.text.match(/\x1b\[1m> say typed/g)?.length, 1, 'the reader knows what was typed')
  await world.kernel.request('POST', `${at}/prompt`, { text: ask('delete', 'Delete all') })
  await shell.answers(/delete: Delete all.*instead: /s, 'n')
  await shell.shows(/answer:.*reject_once.*— done/s)
  await world.kernel.request('POST', `${at}/prompt`, { text: 'say hanging\nhang' })
  await shell.shows(/hanging/)
  shell.type('\x03')
  await shell.shows(/— canceled/)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
  assert.is((await world.row(id)).state, 'active')
})

test('an attached terminal reports a stop once, and continues with the next prompt', async () => {
  const { id } = await world.session('asks')
  const shell = Shell.terminal('session', 'attach', id)
  await shell.shows(/attached to ses_/)
  shell.type('say one\r')
  await shell.shows(/one\r\n.*— done/s)
  shell.type('exit 3\r')
  await shell.shows(/A prompt starts it again/)
  shell.type('say back\r')
  await shell.shows(/back\r\n.*— done/s)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
  assert.is(shell.text.match(/session stopped \(agent_crashed\)/g)?.length, 1, shell.text)
  assert.is(shell.text.match(/A prompt starts it again/g)?.length, 1, shell.text)
})

test('a closed terminal releases its session', async () => {
  const { id } = await world.session('asks')
  const holder = async () => (await world.row(id)).attached_to as string | undefined
  const shell = Shell.terminal('session', 'attach', id)
  await shell.shows(/attached to ses_/)
  assert.match(String(await holder()), /^terminal-/)
  shell.hangUp()
  await eventually(async () => !(await holder()), 'nobody at the session')
  const left = Shell.terminal('session', 'attach', id)
  await left.shows(/Ctrl-D leaves/)
  left.type('\x03')
  assert.is(await left.ended, 0, left.text)
  const again = Shell.terminal('session', 'attach', id)
  await again.shows(/Ctrl-D leaves|Take it over/)
  assert.not.match(again.text, 'Take it over')
  again.type('\x04')
  assert.is(await again.ended, 0, again.text)
  await eventually(async () => !(await holder()), 'nobody at the session')
})

test('without a terminal the answering command is named, and the exit code gives the result', async () => {
  const { id, at } = await world.session('asks')
  const shell = Shell.pipe('session', 'prompt', id, `${ask('execute', 'ls', { command: 'ls' })}\nsay over`)
  await shell.shows(new RegExp(`\\? run: ls \\(svc session approve ${id}\\)`))
  assert.is(await Shell.pipe('session', 'approve', id).ended, 2, 'nobody has seen what would be approved')
  assert.is(await Shell.pipe('session', 'approve', id, '--yes').ended, 0)
  assert.is(await shell.ended, 0, shell.text)
  assert.match(shell.text, /over\n— done\n$/)
  const failed = Shell.pipe('session', 'prompt', id, 'error -32000 no more credit', '-o', 'jsonl')
  assert.is(await failed.ended, 1, failed.text)
  const frames = failed.text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(
    frames.map(({ type }) => type),
    ['user_message', 'error'],
  )
  const sent = Shell.pipe('session', 'prompt', id, 'sleep 50', '--no-wait')
  assert.is(await sent.ended, 0)
  assert.match(sent.text, /^started: svc session events/)
  const waited = Shell.pipe('session', 'wait', id)
  assert.is(await waited.ended, 0)
  assert.match(waited.text, /is idle/)
  await world.kernel.request('POST', `${at}/stop`)
  assert.is(await Shell.pipe('session', 'prompt', id, 'say more').ended, 5)
})

test('a session stopped during a prompt is reported with the next step', async () => {
  const { id, at } = await world.session('asks')
  const stopped = Shell.pipe('session', 'prompt', id, 'say begun\nhang')
  await turnRuns(at)
  await world.kernel.request('POST', `${at}/stop`)
  assert.is(await stopped.ended, 1)
  assert.match(stopped.text, /session stopped \(user_canceled\)/)
  const other = await world.session('asks')
  const shell = Shell.pipe('session', 'prompt', other.id, 'say begun\nhang')
  await turnRuns(other.at)
  await world.restart()
  assert.is(await shell.ended, 1)
  assert.match(shell.text, /session stopped \(shutdown\).*[Aa] prompt starts it again: svc session prompt/s)
  const again = Shell.pipe('session', 'prompt', other.id, 'say back')
  assert.is(await again.ended, 0, again.text)
  assert.match(again.text, /session restarted.*back/s)
  const dies = Shell.pipe('session', 'prompt', other.id, 'exit 3')
  assert.is(await dies.ended, 1)
  assert.match(dies.text, `svc session health ${other.id}`)
  // The turn ends with its process, the session some moments later.
  const whyDead = /Not woken because +it has ended[\s\S]*\nLast error +the agent process ended with code 3/
  await eventually(async () => {
    const health = Shell.pipe('session', 'health', other.id)
    assert.is(await health.ended, 0)
    return whyDead.test(health.text)
  }, String(whyDead))
  await ends(other.at)
})

test.run()
