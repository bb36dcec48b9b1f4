import { test } from 'uvu'
import * as assert from 'uvu/assert'
import vault from '../../../plugins/access/vault/index.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import workspaces from '../../../plugins/desk/workspaces/index.js'
import resources from '../../../plugins/platform/resources/index.js'
import bridges from '../../../plugins/reach/bridges/index.js'
import { testCases } from '../../fixtures/cases.js'
import { boot, type TestKernel } from '../../harness/kernel.js'

const instance = (more: Record<string, unknown> = {}) => ({
  display_name: 'Team chat',
  platform: 'slack',
  extension_name: 'slack-kit',
  routing_policy: { include_peer: true },
  ...more,
})

const INVALID: readonly (readonly [Record<string, unknown>, RegExp])[] = [
  [instance({ display_name: ' ' }), /display_name/],
  [instance({ platform: 'No Such' }), /platform/],
  [instance({ routing_policy: undefined }), /routing_policy/],
  [instance({ routing_policy: { include_thread: true } }), /include_thread needs include_peer or include_group/],
  [instance({ enabled: false, status: 'ready' }), /status: disabled/],
  [instance({ enabled: true, status: 'disabled' }), /status: disabled/],
  [instance({ dm_policy: 'everyone' }), /dm_policy/],
  [instance({ delivery_defaults: { thread_id: 'x' } }), /thread_id: needs peer_id or group_id/],
  [instance({ delivery_defaults: { colour: 1 } }), /delivery_defaults\.colour/],
  [
    instance({ provider_config: { nested: { bot_token: 'abc' } } }),
    /provider_config\.nested\.bot_token: looks like a secret/,
  ],
  [instance({ scope: 'workspace' }), /the record has scope global/],
  [instance({ secret_slots: [{ name: 'Bad Name' }] }), /secret_slots/],
]

const put = (s: TestKernel, id: string, spec: unknown) =>
  s.request('PUT', `/api/resources/bridge.instance/${id}`, { scope: { kind: 'global' }, spec, expected_version: 0 })

testCases({
  open: () => boot({ plugins: [daemon, resources, workspaces, vault, bridges] }),
  close: s => s.close(),
  cases: INVALID,
  name: ([, expected]) => `bridge instances (10): a spec is refused with ${expected.source}`,
  run: async (s, [spec, expected]) => {
    const { status, body } = await put(s, 'bad', spec)
    assert.equal([status, body.code], [422, 'invalid_spec'])
    assert.match(body.error, expected)
  },
  after: [
    'bridge instances (10): only valid specs are stored, with every default',
    async s => {
      const { record } = (await put(s, 'b1', instance({ colour: 'red', secret_slots: [{ name: 'bot_token' }] }))).body
      assert.equal(record.spec, {
        ...instance(),
        routing_policy: { include_group: false, include_peer: true, include_thread: false },
        secret_slots: [{ name: 'bot_token', kind: 'secret' }],
        source: 'dynamic',
        enabled: false,
        status: 'disabled',
        dm_policy: 'open',
        notification_suppress: false,
      })
      assert.is((await put(s, 'b2', instance({ enabled: true }))).body.record.spec.status, 'starting')
      assert.is(
        (
          await put(
            s,
            'b3',
            instance({ provider_config: { max_tokens: 3 }, delivery_defaults: { peer_id: 'p', topic: 't' } }),
          )
        ).status,
        201,
      )
      assert.is((await put(s, 'large', instance({ provider_config: { text: 'x'.repeat(256 * 1024) } }))).status, 413)
      assert.is((await s.request('GET', '/api/resources/bridge.instance')).body.records.length, 3)
    },
  ],
})

test.run()
