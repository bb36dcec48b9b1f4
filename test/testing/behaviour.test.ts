import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin } from '../../kernel/plugin.js'
import { inTree, workspaces } from '../../plugins/index.js'
import { servesAsMuchAs } from '../../testing/contract.js'
import { answersAlike, behaviours, type Reply, StartedExtension, startExtension } from '../../testing/index.js'

const example = (name: string) => path.join(import.meta.dirname, '../../examples/extensions', name)
const test = suite<{ original: StartedExtension; replaced: StartedExtension }>('behaviour of replacements')
test.before(async context => {
  context.original = await StartedExtension.plain()
  context.replaced = await startExtension(example('acme.workspaces'))
})
test.after(async ({ original, replaced }) => {
  await original.close()
  await replaced.close()
})

test('built-in plugins pass the behaviour checks, and so does an extension that replaces one', async ({
  original,
  replaced,
}) => {
  const checked: string[] = []
  for (const [subject, names] of [
    [original, Object.keys(behaviours)],
    [replaced, [workspaces.name]],
  ] as const)
    for (const { name, check } of names.flatMap(plugin => behaviours[plugin] ?? [])) {
      await check(subject)
      checked.push(name)
    }
  const all = Object.values(behaviours).flat().length
  assert.is(checked.length, all + (behaviours.workspaces?.length ?? 0))
})

test('behaviours belong to built-in plugins', () => {
  const names = inTree.map(({ name }) => name)
  for (const name of Object.keys(behaviours)) assert.ok(names.includes(name), name)
})

/** Replacements with one fault each: the changed reply to a request, and what the failed check says. */
const faulty: Readonly<Record<string, { readonly fault: Fault; readonly said: RegExp }>> = {
  vault: {
    fault: (_, url, reply) =>
      url.startsWith('/api/vault/secrets/metadata')
        ? { ...reply, body: { secret: { value: 'behaviour-secret-2' } } }
        : reply,
    said: /present|version|value/,
  },
  trust: {
    fault: (method, url, { body, ...reply }) =>
      method === 'GET' && url.endsWith('/trust') && body.trust.state === 'changed'
        ? { ...reply, body: { trust: { ...body.trust, state: 'trusted' } } }
        : { ...reply, body },
    said: /a file was changed after the review/,
  },
  notifications: {
    fault: (method, url, reply) =>
      method === 'POST' && url === '/api/notifications/presets' ? { ...reply, status: 201 } : reply,
    said: /409/,
  },
  audit: {
    fault: (_, url, reply) =>
      url.startsWith('/api/audit/verify') ? { ...reply, body: { status: 'ok', last: 1, head: 'f' } } : reply,
    said: /a change moves the head of the chain/,
  },
  events: {
    fault: (_, url, { body, ...reply }) =>
      url.startsWith('/api/logs')
        ? { ...reply, body: { ...body, events: [...body.events].reverse() } }
        : { ...reply, body },
    said: /workspace\.deleted/,
  },
}
type Fault = (method: string, url: string, reply: Reply) => Reply

for (const [name, { fault, said }] of Object.entries(faulty))
  test(`a replacement of ${name} that differs in one point fails the checks`, async ({ original }) => {
    const request = async (method: string, url: string, body?: unknown) =>
      fault(method, url, await original.request(method, url, body))
    const failed: string[] = []
    for (const { check } of behaviours[name] ?? [])
      await check({ request, time: original.time }).catch(error => failed.push(error.message))
    assert.is(failed.length, 1, failed.join())
    assert.match(failed[0] ?? '', said)
  })

test('the routes of a replacement reply like the original; a different one is named', async ({
  original,
  replaced,
}) => {
  assert.ok((await answersAlike(workspaces, original, replaced)) > 5)
  const changed = {
    ...replaced,
    time: replaced.time,
    request: async (method: string, url: string, body?: unknown) => {
      const reply = await replaced.request(method, url, body)
      return url === '/api/workspaces' && method === 'GET' ? { ...reply, body: { list: [] } } : reply
    },
  }
  const failed = await answersAlike(workspaces, original, changed).catch(error => error.message)
  assert.match(failed, 'GET /api/workspaces: 200')
})

test('a replacement with a route that accepts less than the original is named', async ({ replaced }) => {
  const installed = replaced.extensions.installed().find(({ name }) => name === 'acme.workspaces')
  const file = `file://${installed?.code?.module}`
  const { default: plugin } = (await import(file)) as { default: Plugin }
  assert.not.throws(() => servesAsMuchAs(workspaces, plugin))
  const routes = plugin.surface.routes?.map(({ query: _, ...route }) => route)
  const lesser = { ...plugin, surface: { ...plugin.surface, routes } } as Plugin
  assert.throws(() => servesAsMuchAs(workspaces, lesser), 'GET /api/workspaces takes no path in its query')
})

test('a replacement that keeps deleted data fails the checks', async ({ replaced }) => {
  const keeps = {
    ...replaced,
    time: replaced.time,
    request: async (method: string, url: string, body?: unknown) =>
      method === 'DELETE' ? { status: 204, headers: {}, body: undefined } : replaced.request(method, url, body),
  }
  const [goes] = behaviours.workspaces ?? []
  assert.match(await goes?.check(keeps).catch(error => error.message), '404')
})

test.run()
