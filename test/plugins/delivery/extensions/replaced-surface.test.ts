import { test } from 'uvu'
import * as assert from 'uvu/assert'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { servesAsMuchAs } from '../../../../testing/contract.js'
import { replacementProblems } from '../../../../testing/judge.js'

const { provides, surface } = workspaces
const replaces = workspaces.name

test('the contract check names the routes that a replacement lacks, whatever its path parameters', () => {
  servesAsMuchAs(workspaces, workspaces)
  const [first, ...routes] = surface.routes ?? []
  const renamed = routes.map(route => ({ ...route, path: route.path.replace('{id}', '{other}') }))
  assert.throws(
    () => servesAsMuchAs(workspaces, { ...(provides && { provides }), surface: { ...surface, routes: renamed } }),
    new RegExp(`it lacks parts of workspaces that are in use: route ${first?.method} ${first?.path}'`),
  )
})

test('a replacement is checked before loading by the rules of loading', () => {
  assert.equal(replacementProblems({ ...(provides && { provides }), surface }), [], 'it replaces nothing')
  assert.equal(replacementProblems({ ...(provides && { provides }), replaces, surface }), [])
  const [, ...declares] = surface.declares ?? []
  const [first] = surface.declares ?? []
  const [lacking = ''] = replacementProblems({ replaces, surface: { ...surface, declares, events: [] } })
  assert.match(lacking, 'it lacks parts of workspaces that are in use: token workspaces@1')
  assert.match(lacking, `registry ${first?.registry}`)
  assert.match(lacking, /event workspace\./)
  assert.equal(replacementProblems({ replaces: 'nobody', surface }), [
    'replaces nobody: svc has no plugin of this name. List them: svc plugin list',
  ])
})

test.run()
