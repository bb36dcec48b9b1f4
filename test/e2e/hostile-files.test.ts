// proof, timeout: 600s: every place that reads a file, with every kind of file that is none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { attackLive, attackStart, FileScene, livePlaces, startPlaces } from '../fixtures/file-places.js'
import { hostileFiles } from '../fixtures/hostile-files.js'

/** All kinds at each place take three minutes: with a seed each place has a third of them, another third with the next seed. */
const seed = process.env.SVC_SEED
const kindsAt = (place: number) =>
  seed === undefined ? hostileFiles : hostileFiles.filter((_, kind) => (kind + place + Number(seed)) % 3 === 0)

const scene = new FileScene()
const test = suite('hostile files')
test.before(() => scene.open())
test.after(() => scene.close())

for (const [at, place] of livePlaces.entries()) {
  test(`${place.name}: a hostile file is reported, and no other request waits for it`, async () => {
    const wrong: string[] = []
    for (const hostile of kindsAt(at)) wrong.push(...(await attackLive(scene, place, hostile)))
    assert.equal(wrong, [])
  })
}

test('the daemon stops', async () => {
  assert.ok((await scene.svc('daemon', 'stop')).ok)
})

/** A start takes a while: the others have their turn in `npm run prove:attack -- files`. */
const started = hostileFiles.filter(({ name }) =>
  ['a named pipe', 'a link to /dev/zero', 'a sparse file of 1 GB'].includes(name),
)

for (const place of startPlaces) {
  test(`a start with a hostile file at ${place.name} does not hang and reports it`, async () => {
    const wrong: string[] = []
    for (const hostile of started) wrong.push(...(await attackStart(scene, place, hostile)))
    assert.equal(wrong, [])
  })
}

test.run()
