import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { throws } from '../../kernel/kit/annotations/index.js'
import { defineErrors, definePlugin, ok, routeOf } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { undeclaredCode } from './error-codes.js'
import { boot } from './kernel.js'

const Errors = defineErrors({
  thing_missing: { status: 404, message: 'no such thing' },
  thing_lost: { status: 409, message: 'the thing is lost' },
})
const route = routeOf()
const answer = { method: 'GET', summary: 'Look', replies: { 200: v.object({ a: v.string() }) } } as const
const things = definePlugin({ name: 'things', version: '1.0.0' }).surface({
  errors: [Errors],
  routes: [
    route({
      ...answer,
      path: '/api/things/{id}',
      with: [throws(Errors.thing_missing)],
      handle: (_, { params }) => {
        if (params.id === 'lost') throw Errors.thing_lost()
        if (params.id === 'gone') throw Errors.thing_missing()
        return ok({ a: params.id })
      },
    }),
    route({
      ...answer,
      path: '/api/things/first',
      handle: () => {
        throw Errors.thing_lost()
      },
    }),
  ],
})

test('a reply with an undeclared code fails the requesting test', async () => {
  const svc = await boot({ plugins: [things] })
  try {
    assert.is((await svc.request('GET', '/api/things/a')).status, 200)
    assert.is((await svc.request('GET', '/api/things/gone')).status, 404)
    assert.is((await svc.request('GET', '/api/things/first')).status, 409, 'a route that declares none is not judged')
    const failed = await svc.request('GET', '/api/things/lost').catch(error => error)
    assert.match(String(failed), 'GET /api/things/lost answers with thing_lost, which it does not declare')
  } finally {
    await svc.close()
  }
})

test('a code of a plugin of the package itself is judged on each of its routes, one of another plugin not on all', () => {
  const judged = (method: string, path: string, code: string) =>
    undeclaredCode(inTree, { method, path, status: 409, body: { code } })
  assert.is(judged('GET', '/api/budgets', 'task_conflict'), 'task_conflict', 'the route declares none')
  assert.is(judged('GET', '/api/budgets', 'session_busy'), undefined)
  assert.is(judged('GET', '/api/extensions/a', 'extension_in_use'), 'extension_in_use')
  assert.is(judged('GET', '/api/sessions', 'extension_loading'), undefined, 'it answers before a route matches')
  assert.is(judged('DELETE', '/api/agents/a', 'agent_exists'), 'agent_exists')
  assert.is(judged('DELETE', '/api/agents/a', 'session_busy'), undefined, 'another plugin may refuse it')
})

test.run()
