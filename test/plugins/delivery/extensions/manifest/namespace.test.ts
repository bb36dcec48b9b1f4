import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { defineErrors, event, kind, type Plugin } from '../../../../../kernel/plugin.js'
import { namespaceProblems } from '../../../../../plugins/delivery/extensions/manifest/namespace.js'

const load = async () => ({ run: () => {} })
const named = (vendor: string, more: Partial<Plugin> = {}): Plugin => ({
  name: 'acme.queue',
  version: '1.0.0',
  requires: {},
  surface: {
    kinds: [kind({ name: `${vendor}.item`, spec: v.object({}), maxBytes: 1024 })],
    events: [event(`${vendor}.queued`, v.object({}))],
    errors: [defineErrors({ [`${vendor}_queue_full`]: { status: 409, message: 'the queue is full' } })],
    commands: [{ path: `${vendor} queue`, summary: 'Show the queue', load }],
  },
  apply: () => ({}),
  ...more,
})

test('names in an extension begin with its vendor; a replacement may use the names of its plugin', () => {
  assert.equal(namespaceProblems(named('acme')), [])
  assert.equal(namespaceProblems(named('acmes')), [
    'the kind acmes.item does not begin with "acme."',
    'the event acmes.queued does not begin with "acme."',
    'the error code acmes_queue_full does not begin with "acme_"',
    'the command acmes queue does not begin with "acme "',
  ])
  assert.equal(namespaceProblems(named('queue', { replaces: 'queue' })), [])
})

test.run()
