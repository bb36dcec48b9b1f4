// proof: a taste of npm run prove:store
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { firstSeed } from '../../proofs/library/seed.js'
import { MUTANTS, States, type SubjectName } from '../../proofs/store/states.js'

// A taste of `npm run prove:store`, which tries 100 or 300 states of each.
const seed = firstSeed()

for (const [subject, count] of [
  ['store', 4],
  ['journal', 40],
  ['file', 40],
] as [SubjectName, number][]) {
  test(`power loss leaves the acknowledged part of a ${subject}, and nothing torn`, async () => {
    const states = new States(seed)
    for (let index = 0; index < count; index++) {
      assert.is(await states.check(subject, index), undefined, `seed ${seed}, state ${index}`)
    }
  })
}

test('the simulator detects a store, a journal and a file without their syncs', async () => {
  const states = new States(1)
  // The mark of the store takes more states: it is left to the proof.
  for (const { subject, without } of MUTANTS.filter(mutant => !mutant.without.source.includes('mark'))) {
    let found: string | undefined
    for (let index = 0; found === undefined && index < 30; index++) found = await states.check(subject, index, without)
    assert.ok(found, `${subject} without syncs of ${without.source}`)
  }
})

test.run()
