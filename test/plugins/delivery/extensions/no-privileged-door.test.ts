// timeout: 120s: three plugins are built and replaced, each in a kernel with all others
import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { conflictOf, lackOf } from '../../../../kernel/index.js'
import type { Plugin } from '../../../../kernel/plugin.js'
import { surfaceProblems } from '../../../../plugins/delivery/extensions/authoring/surface-problems.js'
import { namespaceProblems } from '../../../../plugins/delivery/extensions/manifest/namespace.js'
import { inTree } from '../../../../plugins/index.js'
import { startExtension } from '../../../../testing/index.js'
import { vendorCopy } from '../../../fixtures/vendor-copy.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'

/** What of a plugin of the program an extension of the same code would be refused for, names aside. */
function refusalsOf(plugin: Plugin, others: readonly Plugin[]): string[] {
  const vendored = { ...plugin, name: `acme.${plugin.name}`, replaces: plugin.name }
  return [
    ...surfaceProblems(vendored),
    ...namespaceProblems(vendored),
    ...[conflictOf(plugin, others), lackOf(plugin, plugin)].filter(problem => problem !== undefined),
  ]
}

test('built-in plugins pass the checks of extensions that replace them', () => {
  for (const plugin of inTree) assert.equal(refusalsOf(plugin, inTree), [], plugin.name)
  const [tasks, tools] = ['tasks', 'tools'].map(name => inTree.find(plugin => plugin.name === name) as Plugin)
  const greedy = { ...tools, surface: { ...tools?.surface, routes: tasks?.surface.routes } } as Plugin
  assert.ok(refusalsOf(greedy, inTree).length > 0, 'the checks find what another one has')
})

test('built-in plugins pass the checks of a change in a running kernel', async () => {
  const svc = await boot({ plugins: [...inTree] })
  try {
    for (const plugin of inTree) assert.equal(await svc.kernel.host.reload(plugin), { status: 'active' }, plugin.name)
    assert.is((await svc.request('GET', '/api/status')).status, 200)
  } finally {
    await svc.close()
  }
})

/** Plugins of the program that a vendor's copy of their code replaces, and what it serves then. */
const replaced: Readonly<Record<string, (request: Request) => Promise<unknown>>> = {
  // The record becomes a job, with a time, by a reconciler of another plugin.
  async reconcile(request) {
    const agent = await request('POST', '/api/agents', {
      scope: 'global',
      agent: { name: 'gardener', prompt: 'Water.' },
    })
    assert.is(agent.status, 201, JSON.stringify(agent.body))
    const schedule = { mode: 'every', interval: '1h' }
    const job = { name: 'hourly', agent_name: 'gardener', prompt: 'Go.', scope: 'global', schedule }
    const made = await request('POST', '/api/automation/jobs', job)
    assert.is(made.status, 201, JSON.stringify(made.body))
    assert.ok(made.body.job.next_run)
  },
  async tasks(request) {
    const made = await request('POST', '/api/tasks', { title: 'Water the plants', scope: 'global' })
    assert.is(made.status, 201, JSON.stringify(made.body))
    const found = await request('GET', `/api/tasks/${made.body.task.id}`)
    assert.is(found.status, 200)
    assert.match(JSON.stringify(found.body), 'Water the plants')
  },
  // The tool is a route of another plugin.
  async tools(request) {
    const called = await request('POST', '/api/tools/service__workspace_list/invoke', { input: {} })
    assert.is(called.status, 200, JSON.stringify(called.body))
    assert.match(JSON.stringify(called.body), 'workspaces')
  },
}
type Request = Awaited<ReturnType<typeof startExtension>>['request']

for (const [name, serves] of Object.entries(replaced)) {
  test(`an extension with the code of ${name} and only public imports replaces it and serves`, async () => {
    const into = await temporaryFolder('vendor')
    try {
      const { folder, imported } = await vendorCopy(name, into)
      assert.ok(imported.includes('svc/plugin'))
      const extension = await startExtension(folder)
      try {
        const { body } = await extension.request('GET', '/api/plugins')
        const found = body.plugins.find((plugin: { name: string }) => plugin.name === name)
        assert.is(found?.replaced_by, `acme.${name}`, JSON.stringify(found))
        assert.is(found?.state ?? found?.status, 'active')
        await serves(extension.request.bind(extension) as Request)
      } finally {
        await extension.close()
      }
    } finally {
      await rm(into, { recursive: true, force: true })
    }
  })
}

test.run()
