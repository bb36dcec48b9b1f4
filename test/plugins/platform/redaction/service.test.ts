import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SecretSet } from '../../../../kernel/kit/secret-set.js'
import { RedactionService } from '../../../../plugins/platform/redaction/service.js'

function hiding(values: Readonly<Record<string, string>>): RedactionService {
  const redaction = new RedactionService({
    config: { get: () => true },
    needs: { faults: assert.unreachable },
  } as never)
  const set = new SecretSet()
  for (const [name, value] of Object.entries(values)) set.hide(value, { name })
  redaction.follow([{ owner: 'test', entry: set }])
  return redaction
}

test('member names are searched like values, and stay distinct', () => {
  const redaction = hiding({ key: 'canary-0001' })
  assert.equal(redaction.value({ input: { 'canary-0001': 1, 'x canary-0001': [{ 'canary-0001': 2 }] } }), {
    input: { '[redacted:key]': 1, 'x [redacted:key]': [{ '[redacted:key]': 2 }] },
  } as object)
  const two = redaction.value({ 'canary-0001': 1, Y2FuYXJ5LTAwMDE: 2, 'CANARY-0001': 3 })
  assert.equal(Object.values(two), [1, 2, 3], 'no member is lost')
  assert.not.match(JSON.stringify(two), /canary/i)
})

test('protocol fields stay while they are ordinary words, and are searched otherwise', () => {
  const redaction = hiding({ a: 'completed', b: 'arguments', c: 'ses-0123456789' })
  const told = { status: 'completed', arguments: 'x', tool_call_id: 'completed', message: 'completed' }
  assert.equal(redaction.value(told), { ...told, message: '[redacted:a]' })
  assert.equal(redaction.value({ tool_call_id: 'ses-0123456789', kind: 'x ses-0123456789', toolCallId: 'tool1' }), {
    tool_call_id: '[redacted:c]',
    kind: 'x [redacted:c]',
    toolCallId: 'tool1',
  })
})

test('data without a value is returned as the same object', () => {
  const redaction = hiding({ key: 'canary-0001' })
  const data = { 'a-long-member-name': { nested: ['x', 1, null] }, text: 'nothing' }
  assert.is(redaction.value(data), data)
})

test.run()
