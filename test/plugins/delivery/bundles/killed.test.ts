// proof, timeout: 300s: kills between the steps of an activation
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './bundles-scene.js'
import { agentFile, job, profile, writeKit } from './kit.js'

/** How many of the points are tried, from a random one on; `npm run prove:models` tries all. */
const KILLS = Number(process.env.KILLS ?? 1)
const program = fileURLToPath(new URL('killed-daemon.ts', import.meta.url))
const URL_ = '/api/bundles/activations'
const amy = { agents: { planner: agentFile('planner'), amy: agentFile('amy') } }
const other = {
  ...amy,
  profiles: [profile({ agents: [{ path: 'agents/planner' }, { path: 'agents/amy' }], jobs: [job('weekly')] })],
}

/** What is done, and when the daemon is killed. */
const POINTS: readonly (readonly ['activate' | 'update' | 'deactivate', string, string])[] = [
  ['activate', 'before', '5'],
  ['activate', 'after', ''],
  ['deactivate', 'before', '4'],
  ['activate', 'before', '2'],
  ['activate', 'told', ''],
  ['update', 'before', '1'],
  ['update', 'before', '5'],
  ['update', 'after', ''],
  ['update', 'told', ''],
  ['deactivate', 'before', '8'],
  ['deactivate', 'after', ''],
  ['deactivate', 'told', ''],
]

test('kill -9 at any point of an activation, update or deactivation leaves all of it or nothing', async () => {
  const first = Math.floor(Math.random() * POINTS.length)
  for (const [verb, point, at] of [...POINTS, ...POINTS].slice(first, first + KILLS)) {
    const says = `${verb}, ${point} ${at}`
    const home = await temporaryFolder('bundles-killed')
    const kit = await writeKit(await temporaryFolder('bundles-killed-kit'))
    const look = async (what: string, activate = false) => {
      const s = await scene({ home })
      await s.extensions.load(kit)
      await s.quiet()
      if (activate) await s.activate()
      const { activations } = (await s.request('GET', URL_)).body
      const owned = await s.owned()
      const jobs = (await s.request('GET', '/api/automation/jobs')).body.jobs.map((one: { id: string }) => one.id)
      if (activations.length > 0) {
        const [{ inventory, diagnostics }] = activations
        const keys = inventory.map((item: Record<string, string>) => `${item.resource_kind} ${item.resource_id}`)
        assert.equal([owned.sort(), diagnostics], [keys.sort(), undefined], `${says}: ${what}`)
      } else assert.equal([owned, jobs], [[], []], `${says}: ${what}`)
      await s.end()
      return activations[0]
    }
    const before = verb === 'activate' ? undefined : await look('before', true)
    if (verb === 'update') await writeKit(kit, other)

    const child = spawn(process.execPath, ['--import', 'tsx', program, home, kit, verb, point, at], {
      stdio: 'inherit',
    })
    const [, signal] = await once(child, 'exit')
    assert.is(signal, 'SIGKILL', says)

    const after = await look('after')
    if (point === 'before' && verb !== 'update') assert.equal(after, before, `${says}: nothing of it`)
    if (point === 'told') assert.is(after === undefined, verb === 'deactivate', `${says}: all of it`)
    if (point === 'told' && verb === 'update') assert.is(after.version, before.version + 1, says)
    for (const folder of [home, kit]) await rm(folder, { recursive: true })
  }
})

test.run()
