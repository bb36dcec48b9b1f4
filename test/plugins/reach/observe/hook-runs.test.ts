import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import observe from '../../../../plugins/reach/observe/index.js'
import { type HookRun, Hooks, type HooksApi, points } from '../../../../plugins/work/hooks/api.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot } from '../../../harness/kernel.js'

test('hook runs of today are counted by workspace in the transaction that writes them', async () => {
  const clock = new VirtualClock(Date.UTC(2030, 0, 1, 12))
  let record: (runs: readonly Partial<HookRun>[], fails?: boolean) => Promise<unknown> = async () => {}
  const hooks = definePlugin({
    name: 'hooks',
    version: '0.0.1',
    provides: Hooks,
    service: async () =>
      class implements Pick<HooksApi, 'completed'> {
        readonly completed
        constructor(kernel: PluginKernel) {
          const { completed } = kernel.hooks.of(points)
          this.completed = completed
          record = (runs, fails = false) =>
            kernel.db.tx(t => {
              for (const run of runs)
                completed.check(t, { at: clock.now(), workspaceId: '', outcome: 'applied', ...run } as HookRun)
              if (fails) throw new Error('the disk')
            })
        }
      } as never,
  }).surface({})
  const svc = await boot({ plugins: [daemon, workspaces, hooks, observe], clock })
  const { workspace } = (await svc.request('POST', '/api/workspaces', { root_dir: process.cwd(), name: 'w' })).body
  const counts = async (query = '') => {
    const { system } = (await svc.request('GET', `/api/observe/overview${query}`)).body.overview
    return [system.hook_runs_today, system.hook_failures_today]
  }
  assert.equal(await counts(), [0, 0])
  await record([{}, { workspaceId: workspace.id }, { outcome: 'failed', workspaceId: workspace.id }])
  await record([{ outcome: 'denied' }, { outcome: 'rejected' }, { outcome: 'skipped' }, { outcome: 'dropped' }])
  await record([{}], true).catch(() => {})
  assert.equal(await counts(), [5, 2])
  assert.equal(await counts(`?workspace=${workspace.id}`), [2, 1])
  await clock.advance(12 * 3_600_000)
  assert.equal(await counts(), [0, 0])
  await svc.close()
})

test.run()
