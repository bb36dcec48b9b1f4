import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../../../plugins/index.js'
import type { MetricDeclaration } from '../../../../plugins/reach/telemetry/api.js'
import { declared } from '../../../../plugins/reach/telemetry/metrics/declared.js'
import { boot } from '../../../harness/kernel.js'
import { read } from './exposition.js'

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly query: string }[] }
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}

const file = path.join(import.meta.dirname, '../../../../examples/grafana/svc.json')
const dashboard = JSON.parse(readFileSync(file, 'utf8')) as Dashboard
const queries = [
  ...dashboard.templating.list.map(({ query }) => query),
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
]
const namesIn = (query: string) => [...query.matchAll(/\b((?:svc|process)_[a-z_]+)/g)].map(([, name = '']) => name)
const labelsIn = (query: string) =>
  [...query.matchAll(/by \(([^)]+)\)/g)].flatMap(([, names = '']) => names.split(',').map(name => name.trim()))

test('the metrics of a daemon include the queries of the dashboard, with their labels', async () => {
  assert.ok(queries.flatMap(namesIn).length > 30)
  const svc = await boot({ plugins: inTree })
  const { body } = await svc.kernel.inject({ method: 'GET', url: '/metrics', headers: { accept: 'text/plain' } })
  await svc.close()
  const families = read(body, 'prometheus')
  const all: readonly MetricDeclaration[] = Object.values(declared)
  for (const query of queries) {
    for (const name of namesIn(query)) {
      const family = name.replace(/_bucket$/, '')
      assert.ok(families.has(family), `${name} in ${query}`)
      const { labels = [], type } = all.find(one => one.name === family.replace(/_(total|info)$/, '')) ?? {}
      for (const label of labelsIn(query))
        assert.ok(labels.includes(label) || (label === 'le' && type === 'histogram'), query)
    }
  }
})

test.run()
