// proof, timeout: 120s: the built program on real terminals
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { shellsOf } from '../../../fixtures/shell.js'
import { openScene, type Scene } from './scene.js'

const FAIL = 'ext__clock__fail'

let scene: Scene

test.before(async () => {
  scene = await openScene({ extension: true, config: { tools: { policy: { external_default: 'ask' } } } })
})
test.after(() => scene.close())

const Shell = shellsOf(() => scene.world.home)

test('a waiting call is asked in the following terminal and listed in the inbox', async () => {
  const ada = await scene.agent('ada')
  const shell = Shell.terminal('session', 'attach', ada.id)
  await shell.shows(/attached to/)
  shell.type('hang\r')
  // What was typed is shown before its turn runs, and a call outside of a turn is only in the inbox.
  await shell.shows(/working/)
  await ada.call(FAIL, { why: 'a\u202eb\u001b[2J' })
  await shell.shows(/\? call: ext__clock__fail \(mutating\) \{"why":"a\\u\{202e\}b/)
  const inbox = Shell.pipe('inbox')
  assert.is(await inbox.ended, 0, inbox.text)
  assert.match(inbox.text, /call .*ext__clock__fail \(mutating\)/s)
  await shell.answers(/instead: /, 'y')
  await shell.shows(/Allowed: ext__clock__fail/)
  await ada.call(FAIL, { why: 'other' })
  await shell.answers(/\? call: .*instead: /s, 'n')
  await shell.shows(/Rejected: ext__clock__fail/)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test.run()
