// proof, timeout: 120s
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'
import type { Reply } from '../../harness/kernel.js'
import { repairs } from './repairs.js'

/** Exit code of a check in a folder. */
const codeOf = ([command = '', ...args]: readonly string[], cwd: string) => spawnSync(command, args, { cwd }).status

test('there are at least 20 repairs', () => assert.ok(repairs.length >= 20))

let world: AgentWorld
let rejected: readonly string[] = []

test.before(async () => {
  const answer = ({ toolCall }: Reply) => (rejected.includes(toolCall.title) ? 'reject_once' : 'allow_once')
  world = await openAgent({}, { answer })
})
test.after(() => world.close())

for (const { name, files, check, steps, rejects = [], says = [] } of repairs) {
  test(`the repair fixes ${name}`, async () => {
    rejected = rejects
    await world.fresh(files)
    assert.is.not(codeOf(check, world.root), 0, 'the check fails before')
    world.model.script([...steps, { text: 'It works now.' }])
    assert.equal(await world.prompt('Make the check pass.'), { stopReason: 'end_turn' })
    assert.is(codeOf(check, world.root), 0, 'the check passes after')
    const results = world.model.results()
    for (const [at, pattern] of says.entries()) assert.match(results[at] ?? '', pattern)
    assert.is(results.length, says.length)
    assert.is(world.said(), 'It works now.')
  })
}

test.run()
