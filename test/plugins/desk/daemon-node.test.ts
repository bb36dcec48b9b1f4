import { test } from 'uvu'
import * as assert from 'uvu/assert'
import daemon from '../../../plugins/desk/daemon/index.js'
import { nodeItems } from '../../../plugins/desk/daemon/node-release.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot } from '../../harness/kernel.js'
import { doctor } from '../guest-plugin.js'

const at = (time: string) => Date.parse(time)

test('doctor: a Node release is healthy to the end of its last day, and then a warning', () => {
  const codes = (version: string, time: string) => nodeItems(version, at(time)).map(({ code }) => code)
  assert.equal(codes('20.20.2', '2026-04-30T12:00:00Z'), ['node_ok'])
  assert.equal(codes('20.20.2', '2026-05-01T00:00:00Z'), ['node_end_of_life'])
  assert.equal(codes('24.1.0', '2026-05-01T00:00:00Z'), ['node_ok'])
  assert.equal(codes('99.0.0', '2040-01-01T00:00:00Z'), ['node_ok'])
  const [item] = nodeItems('20.20.2', at('2026-05-01T00:00:00Z'))
  assert.match(item?.message ?? '', /Node 20\.20\.2, .* since 2026-04-30; install/)
})

test('doctor: the daemon checks its own Node by its own clock', async () => {
  const codeAt = async (time: string) => {
    const host = await boot({ plugins: [daemon], clock: new VirtualClock(at(time)) })
    const { items } = await doctor(host, '?only=daemon.node')
    await host.close()
    return items.map(({ code }: { code: string }) => code)
  }
  assert.equal(await codeAt('2025-12-01T00:00:00Z'), ['node_ok'])
  assert.equal(await codeAt('2035-01-01T00:00:00Z'), ['node_end_of_life'])
})

test.run()
