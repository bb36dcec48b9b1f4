import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SecretSet } from '../../../../kernel/kit/secret-set.js'
import { type Clock, definePlugin, type Ids, type Plugin, type Redact } from '../../../../kernel/plugin.js'
import type { Journal } from '../../../../plugins/platform/journals/api.js'
import { RedactionService } from '../../../../plugins/platform/redaction/service.js'
import { SessionLog } from '../../../../plugins/work/sessions/journal/session-log.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { leakOf, writingsOf } from '../../../harness/secret-writings.js'

const VALUE = 'correct-horse/battery+staple "ö"'
const hidden = new SecretSet()
const keeper: Plugin = definePlugin({ name: 'keeper', version: '1.0.0', service: async () => class {} }).surface({
  secrets: [() => hidden],
})

let world: World
test.before(async () => {
  hidden.hide(VALUE, { name: 'test' })
  world = await openWorld({ plugins: [keeper] })
  await world.agent('plain')
})
test.after(() => world.close())

const update = (fields: object) => `update ${JSON.stringify(fields)}`
const chunk = (text: string) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })

test('streamed agent text contains no secret, wherever it is split', async () => {
  const { at } = await world.session('plain')
  for (const [name, writing] of Object.entries(writingsOf(VALUE)).filter(([, one]) => !one.includes('\n'))) {
    const pieces = [...Array(Math.ceil(writing.length / 3)).keys()].map(n => writing.slice(n * 3, n * 3 + 3))
    const lines = ['before ', ...pieces, ' after'].map(chunk)
    const text = agentText(await world.prompt(at, lines.join('\n')))
    assert.match(text, /^before .{0,3}\[redacted:test\].{0,3} after$/, name)
    assert.ok(leakOf(text, writing) <= 4, `${name}: ${text}`)
  }
  const single = [...VALUE].map(chunk)
  assert.is(agentText(await world.prompt(at, single.join('\n'))), '[redacted:test]')
  const half = VALUE.slice(0, 20)
  assert.is(agentText(await world.prompt(at, chunk(half))), half, 'what was held back comes with the end of the turn')
})

test('no event, crash bundle, log or other file of a session contains a secret', async () => {
  const { at, id } = await world.session('plain')
  const call = { toolCallId: 't1', status: 'completed', kind: 'execute' }
  const lines = [
    update({ sessionUpdate: 'tool_call', ...call, title: `run ${VALUE}`, rawInput: { command: VALUE } }),
    update({
      sessionUpdate: 'tool_call',
      ...call,
      toolCallId: VALUE,
      title: 'run',
      rawInput: { [VALUE]: { [`a ${VALUE}`]: 1 } },
    }),
    update({ sessionUpdate: 'plan', entries: [{ content: VALUE, priority: 'high', status: 'pending' }] }),
    update({ sessionUpdate: 'session_info_update', title: `about ${VALUE}` }),
    `line ${VALUE}`,
    `stderr ${VALUE}`,
  ]
  const events = await world.prompt(at, [...lines, 'exit 3'].join('\n'))
  const row = await world.row(id)
  const output = JSON.stringify([events, row])
  const { crash_bundle_path: bundle } = events.at(-1).failure
  const crash = readFileSync(bundle, 'utf8')
  assert.match(crash, '[redacted:test]')
  for (const [name, writing] of Object.entries(writingsOf(VALUE))) {
    const json = JSON.stringify(writing).slice(1, -1)
    for (const [where, text] of Object.entries({ told: output, crash, log: JSON.stringify(world.kernel.log) }))
      assert.ok(leakOf(text, json) <= 8, `${name} in ${where}: ${text.slice(0, 2000)}`)
  }
  const tool = events.find(({ type }: { type: string }) => type === 'tool_call')
  assert.match(JSON.stringify(tool), 'completed')
  const journals = path.join(world.home, 'sessions', id)
  for (const name of readdirSync(journals))
    assert.not.match(readFileSync(path.join(journals, name), 'latin1'), 'battery+staple')
})

/** A log on a journal in memory. */
function logOf(redact: Redact) {
  const clock = new VirtualClock()
  const written: string[] = []
  const events: Reply[] = []
  const journal = {
    generation: 1,
    first: 1,
    last: 0,
    append(payloads: readonly Uint8Array[]) {
      events.push(...payloads.map(payload => JSON.parse(Buffer.from(payload).toString())))
      written.push(...events.slice(-payloads.length).map(event => event.content.text))
      return payloads.map(() => ++journal.last)
    },
    written: async () => {},
    sync: async () => {},
    close: async () => {},
  }
  const ids = { id: (prefix: string) => `${prefix}_0` } as Ids
  const log = new SessionLog(journal as unknown as Journal, clock as unknown as Clock, ids, redact, error => {
    throw error
  })
  return { clock, log, written, events }
}

function hiding(...values: string[]): Redact {
  const kernel = { config: { get: () => true }, needs: { faults: () => assert.unreachable() } }
  const redaction = new RedactionService(kernel as never)
  const set = new SecretSet()
  for (const value of values) set.hide(value)
  redaction.follow([{ owner: 'test', entry: set }])
  return redaction
}

test('the start of a secret waits for the rest for at most a second', async () => {
  const { clock, log, written } = logOf(hiding('swordfish-of-the-day'))
  log.appendText('agent_message', 't', 'it is sword')
  await clock.advance(50)
  assert.equal(written, ['it is '], 'what cannot be one is not held up')
  await log.sync()
  assert.equal(written, ['it is '], 'a reader that wants all there is does not get a half either')
  await clock.advance(500)
  log.appendText('agent_message', 't', 'fish-of-the-')
  await clock.advance(900)
  log.appendText('agent_message', 't', 'day!')
  await clock.advance(50)
  assert.equal(written.splice(0), ['it is ', '[redacted]!'])
  log.appendText('agent_message', 't', 'my sword')
  await clock.advance(50)
  await clock.advance(999)
  assert.equal(written, ['my '])
  await clock.advance(1)
  assert.equal(written.splice(0), ['my ', 'sword'])
  log.appendText('agent_message', 't', 'sword')
  log.append({ type: 'done', turnId: 't', content: {} })
  assert.equal(written.splice(0), ['sword', undefined], 'the end of a turn is the end of its text')
  log.appendText('agent_message', 't', 'sword')
  await log.close()
  assert.equal(written, ['sword'])
})

test('a long text in small chunks is never split into events within a secret', () => {
  const { log, written } = logOf(hiding('swordfish-of-the-day'))
  const text = 'so long, swordfish-of-the-day, '.repeat(4000)
  for (let at = 0; at < text.length; at += 7) log.appendText('agent_message', 't', text.slice(at, at + 7))
  log.append({ type: 'done', turnId: 't', content: {} })
  assert.ok(written.length > 3)
  assert.is(written.filter(Boolean).join(''), text.replaceAll('swordfish-of-the-day', '[redacted]'))
})

test('event keywords are unchanged, whatever is a secret', () => {
  const { log, events } = logOf(hiding('completed', 'journal_full', 'svc.session.event.v1', 'call-one'))
  const content = { status: 'completed', warning: 'journal_full', tool_call_id: 'call-one', text: 'it was completed' }
  log.append({ type: 'runtime_warning', turnId: 't', content })
  assert.equal(events[0].content, { schema: 'svc.session.event.v1', ...content, text: 'it was [redacted]' })
})

test.run()
