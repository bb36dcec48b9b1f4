import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, isAlive } from '../../../fixtures/session-world.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
let at = ''
let id = ''

test.before(async () => {
  scene = await openScene()
  await scene.agent('free')
  const session = await scene.session('free')
  at = session.at
  id = session.id
})
test.after(() => scene.close())

/** A program that stays: `loop` is what it does with each line, `asked` being the question. */
const stays = (loop: string, first = '') => `#!/usr/bin/env python3
import json, sys, os, signal, time
def out(text):
    sys.stdout.write(text); sys.stdout.flush()
def line(**answer):
    out(json.dumps(answer) + "\\n")
${first}
for text in sys.stdin:
    asked = json.loads(text)
${loop
  .split('\n')
  .map(one => `    ${one}`)
  .join('\n')}
`
const good = 'line(id=asked["id"], patch={"message": "say " + asked["payload"]["message"].split()[-1] + "!"})'

async function declared(name: string, text: string, more: object = {}) {
  const command = await scene.program(`${name}.py`, text)
  const hook = { event: 'input.pre_submit', command, warm: true, mode: 'sync', timeout: '60s', ...more }
  await scene.configure({ [name]: hook })
}
const prompted = async (word: string) => agentText(await scene.prompt(at, `say ${word}`))
const drop = (name: string) => scene.kernel.request('DELETE', `/api/settings/hooks/${name}`)

const WELL: Readonly<Record<string, string>> = {
  'answers twice': stays(`${good}\nline(id=asked["id"], patch={"message": "say second"})`),
  'answers an unknown id': stays(`line(id=4711, patch={"deny": True})\n${good}`),
  'answers with non-numeric ids': stays(
    `for wrong in (None, "1", [1], {"a": 1}, 1.5, True): line(id=wrong, patch={"deny": True})\n${good}`,
  ),
  'prints before the first request': stays(good, 'out("hello\\n[]\\nnull\\n7\\n")'),
  'splits its answer': stays(
    'answer = json.dumps({"id": asked["id"], "patch": {"message": "say " + asked["payload"]["message"].split()[-1] + "!"}})\n' +
      'for sign in answer + "\\n": out(sign)',
  ),
  'answers with error null': stays(
    'line(id=asked["id"], error=None, patch={"message": "say " + asked["payload"]["message"].split()[-1] + "!"})',
  ),
}
for (const [what, text] of Object.entries(WELL))
  test(`output of a program that ${what} is parsed`, async () => {
    const name = what.replaceAll(' ', '-')
    await declared(name, text)
    for (const word of ['one', 'two', 'three']) assert.is(await prompted(word), `${word}!\n`)
    await drop(name)
  })

const BADLY: Readonly<Record<string, readonly [string, RegExp]>> = {
  'sends 10 MB without a newline': [stays('out("x" * 10_000_000)'), /longer|long|bytes/],
  'dies between question and answer': [stays('os._exit(7)'), /exit code 7/],
  'closes its output': [stays('sys.stdout.flush(); os.close(1); time.sleep(1000)'), /output|ended|closed|1500 ms/],
  'answers with half a line and dies': [
    stays('out(json.dumps({"id": asked["id"], "patch": {"message": "say half"}})); os._exit(0)'),
    /exit code 0/,
  ],
}
for (const [what, [text, says]] of Object.entries(BADLY))
  test(`a program that ${what} fails its run and is restarted`, async () => {
    const name = what.replaceAll(' ', '-')
    await declared(name, text, what.startsWith('closes') ? { timeout: '1500ms' } : {})
    assert.is(await prompted('plain'), 'plain\n')
    const run = await scene.ran(id, ({ hook_name }) => hook_name === name)
    assert.is(run.outcome, 'failed')
    assert.match(run.error, says)
    await drop(name)
    await declared(`${name}-well`, stays(good))
    assert.is(await prompted('again'), 'again!\n')
    await drop(`${name}-well`)
  })

test('a program that ignores SIGTERM and the end of its input is killed with its declaration', async () => {
  const ignores = 'signal.signal(signal.SIGTERM, signal.SIG_IGN)'
  const text = stays('line(id=asked["id"], patch={"message": "say " + str(os.getpid())})', ignores)
  await declared('ignores', `${text}time.sleep(1000)\n`)
  const pid = Number(await prompted('x'))
  assert.ok(isAlive(pid))
  await drop('ignores')
  await eventually(async () => !isAlive(pid), 'its end')
})

test.run()
