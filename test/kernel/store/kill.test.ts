// proof: kills; npm run prove:store has more of them
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { firstSeed } from '../../proofs/library/seed.js'
import { killJournal, killStore } from '../../proofs/store/kills.js'
import { withChild } from '../../proofs/store/processes.js'

// A taste of `npm run prove:store`, which kills 50 or 200 times.
test('after kill -9 acknowledged data is present, transactions are whole, and the stock sqlite3 reads the files', () =>
  withChild(async script => {
    const seed = firstSeed()
    assert.is(await killStore(script, seed, 0, 4), undefined, `seed ${seed}`)
    assert.is(await killJournal(script, seed, 0, 2), undefined, `seed ${seed}`)
  }))

test.run()
