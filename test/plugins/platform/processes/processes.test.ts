import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel } from '../../../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { critical, inTree, processes } from '../../../../plugins/index.js'
import { Processes, type ProcessesApi, type ProcessHandle } from '../../../../plugins/platform/processes/api.js'
import { inspectProcesses } from '../../../../plugins/platform/processes/inspect.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'

/** A plugin that starts processes, and what it was handed, anew each time it starts. */
function starter(name = 'starter') {
  const handed: ProcessesApi[] = []
  const plugin = definePlugin({
    name,
    version: '1',
    requires: { processes: Processes },
    service: async () =>
      class {
        constructor({ needs }: PluginKernel<{ processes: typeof Processes }>) {
          handed.push(needs.processes)
        }
      },
  }).surface({})
  const start = (...argv: string[]): Promise<ProcessHandle> => {
    const { PATH = '' } = process.env
    return (handed.at(-1) as ProcessesApi).spawn({
      label: argv.join(' '),
      argv,
      cwd: '/',
      env: { PATH },
      stdio: 'pipe',
    })
  }
  return { plugin, start, handed }
}

test('a process ends with its plugin, and no other does', async () => {
  const [one, other] = [starter(), starter('other')]
  const svc = await boot({ plugins: [one.plugin, other.plugin] })
  const [mine, theirs] = [await one.start('cat'), await other.start('cat')]
  const holds = () => svc.kernel.host.plugins().find(({ name }) => name === 'starter')?.holds
  assert.ok(holds()?.includes(`process ${mine.pid}`))
  await svc.kernel.host.unload('starter')
  assert.equal([mine.alive, theirs.alive], [false, true])
  await svc.close()
  assert.is(theirs.alive, false)
})

test('an ended process is no resource of its plugin', async () => {
  const { plugin, start } = starter()
  const svc = await boot({ plugins: [plugin] })
  const holds = () => svc.kernel.host.plugins().find(({ name }) => name === 'starter')?.holds ?? []
  const handle = await start('true')
  await handle.exited
  const isHeld = () => holds().includes(`process ${handle.pid}`)
  for (let i = 0; isHeld() && i < 2000; i++) await new Promise(resolve => setTimeout(resolve, 5))
  assert.not(isHeld())
  await svc.close()
})

test('a new version of a plugin ends its processes and starts new ones', async () => {
  const { plugin, start, handed } = starter()
  const svc = await boot({ plugins: [plugin] })
  const before = await start('cat')
  await svc.kernel.host.reload(processes)
  assert.is(before.alive, false)
  assert.is(handed.length, 2)
  const refused = await (handed[0] as ProcessesApi)
    .spawn({ label: 'late', argv: ['cat'], cwd: '/', env: {}, stdio: 'pipe' })
    .then(
      () => '',
      ({ code }) => code,
    )
  assert.is(refused, 'spawn_failed', 'the one before starts none')
  const after = await start('cat')
  assert.ok(after.alive)
  await svc.close()
  assert.is(after.alive, false)
})

test('a plugin released during the start of its process leaves none', async () => {
  const { plugin, start } = starter()
  const svc = await boot({ plugins: [plugin] })
  const children = () =>
    [...inspectProcesses(process.platform).values()].filter(
      ({ name, parent, ended }) => name === 'sleep' && parent === process.pid && !ended,
    )
  const starting = start('sleep', '1000').then(
    () => 'started',
    ({ message }) => message as string,
  )
  await svc.kernel.host.unload('starter')
  assert.match(await starting, /released/)
  assert.equal(children(), [])
  await svc.close()
})

test('a daemon does not start without the plugin, because others require it', async () => {
  const home = await temporaryFolder('disabled')
  const { writeFile, rm } = await import('node:fs/promises')
  await writeFile(`${home}/config.json`, '{"plugins": {"disabled": ["processes"]}}')
  const error = await createKernel({ home, plugins: inTree, critical }).then(
    () => undefined,
    failed => failed as Error,
  )
  assert.match(error?.message ?? 'it started', /processes.*plugins\.disabled/)
  await rm(home, { recursive: true })
})

test.run()
