import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { figuresTable, type Measured } from '../bench/figures.js'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

test('the figures in README are those of the last bench', () => {
  const measured: Measured = JSON.parse(read('test/bench/last.json'))
  const table = figuresTable(measured).join('\n')
  const readme = read('README.md')
  assert.ok(readme.includes(table), `README lacks this table:\n${table}`)
  assert.match(readme, `Node ${measured.node.replace('v', '')}, ${measured.cores} cores`)
})

test('an unmeasured figure is named', () => {
  assert.throws(() => figuresTable({ node: 'v20', cores: 2, figures: [] }), /no figure of durable PUT/)
})

test.run()
