import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { formerNames, inTree } from '../../plugins/index.js'

test('each former name leads to a plugin of this version or to the kernel, and the table is sorted', () => {
  const names = inTree.map(({ name }) => name)
  const former = Object.keys(formerNames)
  assert.equal(former, [...former].sort())
  for (const [name, successor] of Object.entries(formerNames)) {
    assert.not.ok(names.includes(name), `${name} is the name of a plugin`)
    assert.ok(successor === 'kernel' || names.includes(successor), `${name} leads to ${successor}, which is no plugin`)
  }
})

test.run()
