import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agents, bundles, daemon, extensions, providers, resources, workspaces } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from '../extensions/scene.js'
import { REQUEST } from './bundles-scene.js'
import { agentFile, profile, writeKit } from './kit.js'

const URL = '/api/bundles/activations'

test('a dropped-in folder is in the catalog; an agent edit applies; an active one cannot be disabled', async () => {
  const kit = await writeKit(await temporaryFolder('bundles-live'), {
    profiles: [profile({ jobs: [], triggers: [], bridges: [], layouts: [] })],
  })
  const files = Object.fromEntries(
    await Promise.all(
      ['extension.json', 'bundles/kit.json', 'agents/planner/AGENT.md'].map(
        async file => [file, await readFile(path.join(kit, file), 'utf8')] as const,
      ),
    ),
  )
  const s = await scene({}, { plugins: [daemon, resources, workspaces, providers, agents, extensions, bundles] })
  await s.drop('demo-kit', files, true)
  const active = await s.until('demo-kit', extension => extension?.state === 'active')
  assert.equal(active.bundles, [{ name: 'release-kit' }])
  const { activation } = (await s.request('POST', URL, REQUEST)).body
  assert.equal(
    activation.agents.map((agent: { name: string }) => agent.name),
    ['planner'],
  )
  const prompt = async () => (await s.request('GET', '/api/agents/planner')).body.agent?.prompt
  assert.is(await prompt(), 'You are planner.')

  const file = path.join(s.home, 'extensions/demo-kit/agents/planner/AGENT.md')
  await writeFile(file, agentFile('planner', '', 'You plan.'))
  const until = async (look: () => Promise<boolean>, what: string) => {
    for (let tries = 0; !(await look()); tries++) {
      if (tries > 4000) throw new Error(`waited in vain until ${what}`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
  await until(async () => (await prompt()) === 'You plan.', 'the edit is projected')

  await writeFile(file, 'not a definition')
  await s.until('demo-kit', extension => extension?.last_error?.includes('profiles.0.agents.0.path'))
  assert.is(await prompt(), 'You plan.', 'what was good stays')

  const refused = await s.request('POST', '/api/extensions/demo-kit/disable')
  assert.equal([refused.status, refused.body.details.activations], [409, activation.id])
  assert.is((await s.request('DELETE', `${URL}/${activation.id}`)).status, 204)
  assert.is((await s.request('POST', '/api/extensions/demo-kit/disable')).status, 200)
  assert.equal((await s.request('GET', '/api/bundles/catalog')).body.bundles, [])
  await s.close()
})

test('an extension whose manifest lost its bundles has none in the catalog', async () => {
  const manifest = (resources: object) => JSON.stringify({ name: 'demo-kit', version: '1.0.0', resources })
  const bundle = JSON.stringify({ name: 'kit', profiles: [{ name: 'p' }] })
  const s = await scene(
    { 'demo-kit': { 'extension.json': manifest({ bundles: ['bundles'] }), 'bundles/kit.json': bundle } },
    { plugins: [daemon, resources, workspaces, providers, agents, extensions, bundles] },
  )
  const count = async () => (await s.request('GET', '/api/resources/bundle')).body.records.length
  await s.until('demo-kit', extension => extension?.state === 'active')
  assert.is(await count(), 1)
  await s.drop('demo-kit', { 'extension.json': manifest({}) })
  for (let tries = 0; (await count()) > 0; tries++) {
    assert.ok(tries < 4000, 'the record stays')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  await s.close()
})

test.run()
