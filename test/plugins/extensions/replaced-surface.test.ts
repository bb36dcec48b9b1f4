import { test } from 'uvu'
import * as assert from 'uvu/assert'
import workspaces from '../../../plugins/workspaces/index.js'
import { servesAsMuchAs } from '../../../testing/contract.js'

test('the contract of extensions names the routes that a replacement lacks, whatever its path parameters are called', () => {
  servesAsMuchAs(workspaces, workspaces)
  const [first, ...routes] = workspaces.surface.routes ?? []
  const renamed = routes.map(route => ({ ...route, path: route.path.replace('{id}', '{other}') }))
  assert.throws(
    () => servesAsMuchAs(workspaces, { surface: { ...workspaces.surface, routes: renamed } }),
    new RegExp(`in the place of workspaces it lacks: route ${first?.method} ${first?.path}$`),
  )
})

test.run()
