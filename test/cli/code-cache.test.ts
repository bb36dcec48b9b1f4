// proof: processes that take what others kept
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { typescript } from '../harness/run-typescript.js'

const program = fileURLToPath(new URL('../fixtures/run-cached.ts', import.meta.url))
const codeOf = (output: string) =>
  `(function (require, module, moduleUrl, importForeign) {
    module.exports = { said: '${output} ' + typeof require('node:fs').readFileSync, load: url => importForeign(url) }
  })`

interface Cached {
  readonly folder: string
  readonly file: string
  readonly caches: string
}

const test = suite<Cached>('code cache')
test.before.each(context => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-code-'))
  Object.assign(context, { folder, file: join(folder, 'code.cjs'), caches: join(folder, 'caches') })
  writeFileSync(context.file, codeOf('one'))
})
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }))

/** In a process of its own: within one V8 remembers what it compiled. */
function run(file: string, folders: readonly string[], ...flags: string[]) {
  const out = execFileSync(process.execPath, [...flags, ...typescript, program, file, ...folders], { encoding: 'utf8' })
  return JSON.parse(out) as { said: string; loaded: string; found: boolean }
}

const one = { said: 'one function', loaded: 'loaded' }
const onlyName = (folder: string) => {
  const names = readdirSync(folder)
  assert.is(names.length, 1)
  return join(folder, names[0] as string)
}

test('the code cache of one process is used by the next, from any folder', ({ file, caches, folder }) => {
  const none = join(folder, 'none')
  assert.equal(run(file, [caches, none]), { ...one, found: false })
  assert.equal(run(file, [caches, none]), { ...one, found: true })
  assert.equal(run(file, [none, caches]), { ...one, found: true })
  assert.not(readdirSync(folder).includes('none'), 'nothing is written where nothing is missing')
})

test('different code of the same length is compiled and replaces the cache', ({ file, caches }) => {
  run(file, [caches])
  const before = onlyName(caches)
  writeFileSync(file, codeOf('two'))
  assert.equal(run(file, [caches]), { ...one, said: 'two function', found: false })
  assert.is.not(onlyName(caches), before)
})

test('a cache that is damaged or refused by V8 is ignored and rebuilt', ({ file, caches }) => {
  run(file, [caches])
  const cache = onlyName(caches)
  const good = readFileSync(cache)
  const flipped = Buffer.from(good)
  flipped[good.length >> 1] = (good[good.length >> 1] as number) ^ 0xff
  // As another version of V8 would have made it, and whole.
  const data = Buffer.from(good.subarray(32))
  data.fill(0xff, 0, 16)
  const foreign = Buffer.concat([createHash('sha256').update(data).digest(), data])
  for (const bad of [flipped, good.subarray(0, 100), Buffer.alloc(0), foreign]) {
    writeFileSync(cache, bad)
    assert.equal(run(file, [caches]), { ...one, found: false })
    assert.equal(run(file, [caches]), { ...one, found: true })
  }
  // Of one that does not suit, here for its flags, a fitting one of its own takes the place.
  const own = join(caches, '..', 'own')
  assert.equal(run(file, [own, caches], '--no-lazy'), { ...one, found: false })
  assert.equal(run(file, [own, caches], '--no-lazy'), { ...one, found: true })
})

test('an unreadable or unwritable cache folder is no error', ({ file, folder }) => {
  const inTheWay = join(folder, 'file')
  writeFileSync(inTheWay, '')
  assert.equal(run(file, [join(inTheWay, 'below'), inTheWay]), { ...one, found: false })
  const caches = join(folder, 'caches')
  run(file, [caches])
  const cache = onlyName(caches)
  rmSync(cache)
  mkdirSync(join(cache, 'occupied'), { recursive: true })
  assert.equal(run(file, [caches]), { ...one, found: false })
})

test.run()
