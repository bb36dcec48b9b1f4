import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin } from '../../kernel/plugin.js'
import { critical, formerNames, inTree } from '../../plugins/index.js'
import { Tcp } from '../../plugins/platform/tcp/api.js'
import { replacementProblems } from '../../testing/judge.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { doctor } from './guest-plugin.js'

test('each former name maps to a plugin of this version or the kernel, and the table is sorted', () => {
  const names = inTree.map(({ name }) => name)
  const former = Object.keys(formerNames)
  assert.equal(former, [...former].sort())
  for (const [name, successor] of Object.entries(formerNames)) {
    assert.not.ok(names.includes(name), `${name} is the name of a plugin`)
    assert.ok(successor === 'kernel' || names.includes(successor), `${name} leads to ${successor}, which is no plugin`)
  }
})

test('a home that disables former plugins starts, and the doctor names each', async () => {
  const home = await temporaryFolder('former')
  const former = Object.keys(formerNames)
  const disabled = [...former, 'bridges']
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ plugins: { disabled } }))
  const svc = await boot({ plugins: inTree, home, formerNames, critical })
  const stopped = svc.kernel.host.plugins().filter(({ state }) => state.status === 'disabled')
  assert.equal(
    stopped.map(({ name }) => name),
    ['bridges'],
  )
  const { items } = await doctor(svc, '?only=config')
  assert.equal(
    items.map(({ id, code }: Record<string, string>) => `${code} ${id}`).sort(),
    former.map(name => `config_former_plugin plugins.disabled.${name}`).sort(),
  )
  const commands = new Set(items.map((item: Record<string, string>) => item.suggested_command))
  assert.equal([...commands], [`svc config set plugins.disabled '["bridges"]'`])
  await svc.close()
  await rm(home, { recursive: true })
})

test('a replacement of a former plugin is judged by its successor', () => {
  const problems = (replaces: string, provides?: Plugin['provides']) =>
    replacementProblems({ replaces, surface: {}, ...(provides ? { provides } : {}) })
  assert.equal(problems('tls'), ['replaces tls: it is a part of the plugin tcp now and cannot be replaced by itself'])
  assert.equal(problems('services'), [
    'replaces services: it is a part of the kernel now and cannot be replaced by itself',
  ])
  assert.match(problems('tls', Tcp).join(), /it lacks parts of tcp that are in use: .*setting http.port/)
  for (const name of ['nobody', 'constructor']) assert.match(problems(name).join(), /svc has no plugin of this name/)
})

test.run()
