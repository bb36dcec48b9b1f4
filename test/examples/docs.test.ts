import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
const blocks = (text: string) =>
  [...text.matchAll(/^```(?:ts|js|toml)\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string)

/** What is wrong with a block of code: it quotes a file, named in its first line, to the letter. */
function wrongIn(block: string): string | undefined {
  const [, file, code] = /^(?:\/\/|#) (\S+\.(?:ts|m?js|toml))\n([\s\S]+)$/.exec(block) ?? []
  if (file === undefined || code === undefined) return `no file is named: ${block.slice(0, 60)}`
  return read(file).includes(code) ? undefined : `${file} has no such lines: ${code.slice(0, 60)}`
}

const documents = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter(file =>
  file.endsWith('.md'),
)

for (const name of documents) {
  const quoted = blocks(read(`docs/${name}`))
  if (quoted.length === 0) continue
  test(`the code in docs/${name} equals running code`, () => {
    assert.equal(quoted.map(wrongIn).filter(Boolean), [])
  })
}

test('a block without a source, or with a wrong one, is found', () => {
  assert.match(wrongIn('const a = 1\n') ?? '', 'no file')
  assert.match(wrongIn('// examples/plugins/notes/index.ts\nconst a = 1\n') ?? '', 'no such lines')
})

test('a decision states what, why and its cost in three lines, and decisions are few', () => {
  const [, ...entries] = read('docs/decisions.md').split(/^(?=\d+\. \*\*)/m)
  const numbers = entries.map(entry => Number.parseInt(entry, 10))
  assert.is(new Set(numbers).size, entries.length, 'numbers are unique')
  assert.ok(entries.length <= 65, `${entries.length} entries: one that a test or a comment can hold goes`)
  const wrong = entries.filter(entry => {
    const [what = '', , cost = '', ...more] = (entry.split(/^## /m)[0] ?? '').trim().split('\n')
    return !what.endsWith('**') || !/^\s+Cost: /.test(cost) || more.length > 0
  })
  assert.equal(wrong, [])
})

const readmes = ['kernel', 'plugins'].flatMap(folder =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => path.basename(file) === 'README.md')
    .map(file => path.join(folder, file)),
)

test('every link in the documents resolves', () => {
  for (const document of ['README.md', ...documents.map(name => `docs/${name}`), ...readmes]) {
    for (const [, link = ''] of read(document).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(link)) continue
      const target = path.resolve(root, path.dirname(document), link)
      assert.ok(target.startsWith(root) && existsSync(target), `${document} links to ${link}, which is not there`)
    }
  }
})

test.run()
