import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { realAgents } from './agents.js'
import { mainCapabilities, resultsTable, withRun } from './results.js'

const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')

for (const [page, columns] of [
  ['README.md', mainCapabilities],
  ['docs/agents.md', undefined],
] as const)
  test(`the table of agents in ${page} matches the last run of test:real`, () => {
    const table = resultsTable(JSON.parse(read('results.json')), columns).join('\n')
    assert.ok(read(`../../${page}`).includes(table), `${page} lacks this table:\n${table}`)
  })

test('every agent is in the results at its tested version', () => {
  const { agents } = JSON.parse(read('results.json'))
  const versions = Object.entries(realAgents).map(([name, { version }]) => [name, version])
  assert.equal(
    Object.fromEntries(versions),
    Object.fromEntries(Object.keys(agents).map(name => [name, agents[name].version])),
  )
})

test('a run of one agent keeps the results of the others', () => {
  const before = withRun(undefined, { codex: { cancel: true }, claude: { cancel: false } })
  const after = withRun(before, { claude: { cancel: true } })
  assert.equal([after.agents.codex?.cancel, after.agents.claude?.cancel], [true, true])
  assert.match(resultsTable(before).at(-1) ?? '', /^\| claude: `.+` [\d.]+ \| not watched \|.*\| ✗ \|/)
})

test.run()
