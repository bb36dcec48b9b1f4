import { Readable } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readLines } from '../../../../plugins/platform/processes/output/lines.js'

const turn = () => new Promise(resolve => setImmediate(resolve))

/** Reads pieces of output; a line that begins with `m` is a message. Returns the lines, and why the reading ended early. */
async function read(pieces: Iterable<string>, more: { lineBytes?: number; junk?: number } = {}) {
  const lines: string[] = []
  const why = await readLines(Readable.from([...pieces].map(piece => Buffer.from(piece))), {
    ...{ owner: 'test', lineBytes: 100, junk: 100, unfinished: true, ...more },
    take(line) {
      lines.push(line)
      return line.startsWith('m')
    },
  }).catch((error: Error) => error.message)
  return { lines, why }
}

test('lines are assembled from chunks of any size; the last one needs no line break', async () => {
  assert.equal((await read(['a\r\nb\nc', 'd\n\n', 'e'])).lines, ['a', 'b', 'cd', '', 'e'])
})

test('an overlong line ends the reading with the limit', async () => {
  const { lines, why } = await read(['a\n', 'x'.repeat(11)], { lineBytes: 10 })
  assert.equal([lines, why], [['a'], 'a line of more than 10 bytes'])
})

test('too many consecutive non-message lines end the reading; a message resets the count', async () => {
  const junk = (count: number) => Array.from({ length: count }, () => '{}\n')
  const { why, lines } = await read([...junk(90), 'm\n', ...junk(90), 'm\n'])
  assert.equal([why, lines.length], [undefined, 182])
  for (const line of ['{}\n', 'garbage\n', '\n']) {
    const flood = await read(Array.from({ length: 1000 }, () => line))
    assert.is(flood.why, 'more than 100 lines in a row that are not messages')
    assert.ok(flood.lines.length < 200, `${flood.lines.length} lines`)
  }
})

test('a program that floods with messages is killed, and the limit is named', async () => {
  const { why } = await read(Array.from({ length: 30 }, () => 'm\n'.repeat(10_000)))
  assert.is(why, 'it floods: a burst of over 200000 lines, and 2000 per second since')
})

for (const [what, pieces] of [
  ['in one chunk', ['m\n'.repeat(4000)]],
  ['one per chunk', Array.from({ length: 4000 }, () => 'm\n')],
] as const)
  test(`other work and other flooding programs get turns while lines come ${what}`, async () => {
    let turns = 0
    let over = false
    const counted = [0, 0]
    let most = 0
    const one = (n: 0 | 1) =>
      readLines(Readable.from(pieces.map(piece => Buffer.from(piece))), {
        ...{ owner: 'test', lineBytes: 100, junk: 0 },
        take() {
          counted[n]!++
          most = Math.max(most, Math.abs(counted[0]! - counted[1]!))
          return true
        },
      })
    const done = Promise.all([one(0), one(1)]).then(() => {
      over = true
    })
    while (!over) {
      await turn()
      turns++
    }
    await done
    assert.equal(counted, [4000, 4000])
    assert.ok(turns >= 900, `${turns} turns of the event loop for 8000 lines`)
    assert.ok(most <= 40, `one program was ${most} lines ahead of the other`)
  })

test('nothing is read while earlier messages are being processed', async () => {
  let taken = 0
  let open: (() => void) | undefined
  const reading = readLines(Readable.from([Buffer.from('m\nm\n'), Buffer.from('m\n')]), {
    ...{ owner: 'test', lineBytes: 100, junk: 0 },
    take: () => ++taken > 0,
    room: () => new Promise(resolve => (open = resolve)),
  })
  while (open === undefined) await turn()
  await turn()
  assert.is(taken, 2)
  open()
  open = undefined
  while (open === undefined) await turn()
  assert.is(taken, 3)
  ;(open as () => void)()
  await reading
})

test.run()
