import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { troubleOf } from '../../../plugins/agents/providers/health.js'
import { Events } from '../../../plugins/platform/events/api.js'
import { probe } from '../../../testing/traces.js'
import { label } from '../../fixtures/cases.js'
import { eventually, openWorld } from '../../fixtures/session-world.js'

const TEXTS: readonly (readonly [string, string | undefined])[] = [
  ['the agent requires a login: Authentication required (-32000); claude /login', 'auth_required'],
  ['401 {"type":"authentication_error","message":"invalid x-api-key"}', 'auth_required'],
  ['Incorrect API key provided (-32603)', 'auth_required'],
  ['Please log in first', 'auth_required'],
  ['429 Too Many Requests', 'rate_limited'],
  ['You have reached your usage limit; it resets at 5pm', 'rate_limited'],
  ['insufficient_quota: check your plan', undefined],
  ['Your quota is used up', 'rate_limited'],
  ['403 permission_error: your account may not use this model', 'permission_denied'],
  ['Access denied', 'permission_denied'],
  ['Overloaded (529)', 'unavailable'],
  ['connect ECONNREFUSED 127.0.0.1:11434', 'unavailable'],
  ['TypeError: fetch failed', 'unavailable'],
  ['the test suite failed with 3 errors', undefined],
  ['Cannot read properties of undefined', undefined],
  ['order 4290 was not found', undefined],
]

for (const [text, trouble] of TEXTS)
  test(`the error text is ${trouble ?? 'no failure of a provider'}: ${label(text)}`, () =>
    assert.is(troubleOf(text), trouble))

test('a provider is reported once when it begins to fail and once when it recovers, across a restart', async () => {
  const look = probe({ events: Events })
  const world = await openWorld({ plugins: [look.plugin] })
  try {
    await world.agent('ada')
    const { at } = await world.session('ada')
    const eventsOf = async () => {
      await look.kernel().db.durable()
      const all = await look.kernel().needs.events.list({})
      return all.flatMap(({ name, payload }) => (name.startsWith('provider.') ? [[name, payload]] : []))
    }
    const namesOf = async (count: number) => {
      await eventually(async () => (await eventsOf()).length >= count, `${count} events`)
      return (await eventsOf()).map(([name]) => name)
    }
    await world.prompt(at, 'say fine')
    assert.equal(await eventsOf(), [])
    await world.prompt(at, 'error -32603 429 Too Many Requests')
    assert.equal(await namesOf(1), ['provider.rate_limited'])
    await world.prompt(at, 'error -32603 429 Too Many Requests')
    await world.restart()
    await world.prompt(at, 'error -32603 429 Too Many Requests')
    await world.prompt(at, 'error -32603 401 Unauthorized')
    assert.equal(await namesOf(2), ['provider.rate_limited', 'provider.auth_required'])
    await world.prompt(at, 'say fine')
    assert.equal(await namesOf(3), ['provider.rate_limited', 'provider.auth_required', 'provider.recovered'])
    await world.prompt(at, 'say fine')
    assert.is((await eventsOf()).length, 3)
    const [[, payload] = []] = await eventsOf()
    assert.match(`${(payload as { message: string }).message}`, /429 Too Many Requests/)
  } finally {
    await world.close()
  }
})

test('repeated turn failures with unknown text count as provider failure until one completes', async () => {
  const look = probe({ events: Events })
  const world = await openWorld({ plugins: [look.plugin] })
  try {
    await world.agent('ada')
    const { at } = await world.session('ada')
    const eventsOf = (count: number) =>
      eventually(async () => {
        await look.kernel().db.durable()
        const found = (await look.kernel().needs.events.list({})).filter(({ name }) => name.startsWith('provider.'))
        return found.length >= count && found
      }, `${count} events`)
    const fails = () => world.prompt(at, 'error -32603 the model made no sense')
    await fails()
    await fails()
    await world.prompt(at, 'say fine')
    await fails()
    await fails()
    assert.equal(await eventsOf(0), [])
    await fails()
    const [first] = await eventsOf(1)
    assert.is(first?.name, 'provider.unavailable')
    assert.match(JSON.stringify(first?.payload), /3 turns in a row failed.*made no sense/)
    await fails()
    await world.prompt(at, 'say fine')
    assert.equal(
      (await eventsOf(2)).map(({ name }) => name),
      ['provider.unavailable', 'provider.recovered'],
    )
  } finally {
    await world.close()
  }
})

test.run()
