import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openWorld, type World } from '../../../fixtures/session-world.js'

let world: World

test.before(async () => {
  world = await openWorld({})
  await world.agent('plain')
})
test.after(() => world.close())

const HALF = '\ud83d'
/** Texts of a value that have half of a character. */
function halvesIn(value: unknown): string[] {
  if (typeof value === 'string') return value.isWellFormed() ? [] : [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [...halvesIn(name), ...halvesIn(member)])
}

/** Everything that is kept of a turn, when it has ended. */
async function turnOf(text: string) {
  const { at } = await world.session('plain')
  const { new_turn_id: turn } = (await world.kernel.request('POST', `${at}/prompt`, { text })).body.prompt
  await world.until(at, event => event.turn_id === turn && event.type === 'done')
  const read = async (what: string) => (await world.kernel.request('GET', `${at}${what}`)).body
  return { events: await read('/events?limit=500'), transcript: await read('/transcript'), row: await read('') }
}

test('a lone surrogate in a request is replaced before it is stored', async () => {
  const { events, transcript, row } = await turnOf(`say half ${HALF} end`)
  assert.equal(halvesIn([events, transcript, row]), [])
  assert.match(JSON.stringify(transcript), 'half \ufffd end')
})

test('a lone surrogate from an agent is replaced in texts, titles and names', async () => {
  const call = {
    sessionUpdate: 'tool_call',
    toolCallId: 't1',
    title: `T${HALF}`,
    kind: 'read',
    status: 'completed',
    rawInput: { [`name ${HALF}`]: HALF },
    content: [{ type: 'content', content: { type: 'text', text: `x${HALF}` } }],
  }
  // The escapes are those of the prompt: the agent makes halves of them.
  const { events, transcript } = await turnOf(`update ${JSON.stringify(call)}`)
  assert.equal(halvesIn([events, transcript]), [])
  assert.match(JSON.stringify(events), 'T\ufffd')
})

test('a limit never splits a character', async () => {
  const face = '\u{1f600}'
  const call = {
    sessionUpdate: 'tool_call',
    toolCallId: 't1',
    title: 't'.repeat(199) + face,
    kind: 'read',
    status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text: 'x'.repeat(4095) + face.repeat(3) } }],
  }
  const { events, transcript, row } = await turnOf(
    `say ${'m'.repeat(128 * 1024 - 1)}${face} tail\nupdate ${JSON.stringify(call)}`,
  )
  assert.equal(halvesIn([events, transcript, row]), [])
  assert.match(JSON.stringify(events), 'ttt')
  // Half of a character that is stored comes back as this one.
  assert.not.match(JSON.stringify([events, transcript, row]), '\ufffd')
})

test.run()
