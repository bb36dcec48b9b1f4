import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { modelsOffered } from '../../../../plugins/agents/models/sources/acp.js'
import { endpointOf } from '../../../../plugins/agents/models/sources/endpoint.js'
import { extensionSource } from '../../../../plugins/agents/models/sources/extension.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'

const signal = new AbortController().signal

test('an extension lists models of several providers or its own; an invalid answer is refused', async () => {
  const requests: unknown[] = []
  const source = (answer: unknown) =>
    extensionSource(
      { key: 'acme', name: 'acme' },
      {
        call: async (...args) => {
          requests.push(args)
          return answer
        },
      },
      new VirtualClock(),
    )
  const models = [{ provider_id: 'codex', model_id: 'a', supports_tools: true }, { id: 'b' }, { id: 5 }]
  assert.equal(await source({ models }).read(signal), [
    { provider: 'codex', facts: { id: 'a', supports_tools: true } },
    { provider: 'acme', facts: { id: 'b' } },
  ])
  assert.equal(requests, [['acme', 'models/list', {}]])
  for (const answer of [undefined, 'models', { models: 'many' }]) {
    const error = await source(answer)
      .read(signal)
      .catch(error => error)
    assert.match(error.message, /not a list of models/)
  }
})

test('the model option of session/new wins over a list of models; other answers offer nothing', () => {
  const models = { currentModelId: 'a', availableModels: [{ modelId: 'a', name: 'A', _meta: { contextLimit: 10 } }] }
  const configOptions = [{ id: 'model', options: [{ value: 'b' }] }]
  assert.equal(modelsOffered({ models, configOptions }), [{ id: 'b' }])
  const both = [{ id: 'model', options: [{ value: 'a', name: 'The A' }, { value: 'b' }] }]
  assert.equal(modelsOffered({ models, configOptions: both }), [
    { id: 'a', display_name: 'The A', context_window: 10 },
    { id: 'b' },
  ])
  assert.equal(modelsOffered({ models }), [{ id: 'a', display_name: 'A', context_window: 10 }])
  assert.equal(modelsOffered({ configOptions }), [{ id: 'b' }])
  for (const odd of [null, 5, {}, { models: [] }, { configOptions: 'x' }, { models: { availableModels: [1, null] } }])
    assert.equal(modelsOffered(odd), [])
})

test('an endpoint is asked only over HTTP, and not with discovery off', () => {
  assert.is(endpointOf({ base_url: 'http://127.0.0.1:1/v1/' })?.href, 'http://127.0.0.1:1/v1/models')
  const models = { discovery: { endpoint: 'https://models.example/list' } }
  assert.is(endpointOf({ base_url: 'http://127.0.0.1:1/v1', models })?.href, 'https://models.example/list')
  for (const base_url of ['file:///etc/passwd', 'not a url', '', 'ftp://x/'])
    assert.is(endpointOf({ base_url }), undefined)
  assert.is(endpointOf({ base_url: 'http://x/', models: { discovery: { enabled: false } } }), undefined)
})

test.run()
