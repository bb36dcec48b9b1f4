import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { critical, formerNames, inTree } from '../../plugins/index.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { doctor } from './guest-plugin.js'

test('each former name leads to a plugin of this version or to the kernel, and the table is sorted', () => {
  const names = inTree.map(({ name }) => name)
  const former = Object.keys(formerNames)
  assert.equal(former, [...former].sort())
  for (const [name, successor] of Object.entries(formerNames)) {
    assert.not.ok(names.includes(name), `${name} is the name of a plugin`)
    assert.ok(successor === 'kernel' || names.includes(successor), `${name} leads to ${successor}, which is no plugin`)
  }
})

test('a home that disables plugins of earlier versions starts, and the doctor names each', async () => {
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

test.run()
