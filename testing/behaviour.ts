import assert from 'node:assert/strict'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Plugin, type Route, within } from '../kernel/plugin.js'
import type { Reply, StartedExtension } from './extension.js'

type Subject = Pick<StartedExtension, 'request' | 'time'>

/** A behaviour that other plugins rely on. */
export interface Behaviour {
  readonly name: string
  /** @throws AssertionError */
  readonly check: (subject: Subject) => Promise<void>
}

/** Wraps a check that needs a temporary folder outside of the home. */
const inFolder =
  (check: (subject: Subject, root: string) => Promise<void>): Behaviour['check'] =>
  async subject => {
    const root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'svc-behaviour-')))
    try {
      await check(subject, root)
    } finally {
      await rm(root, { recursive: true, force: true })
    }
  }

/**
 * Behaviours of the package's plugins that other plugins rely on, by plugin name. A replacement must have them too. They are
 * checked through the routes of the plugin, or through routes that show its data.
 */
export const behaviours: Readonly<Record<string, readonly Behaviour[]>> = {
  workspaces: [
    {
      name: 'a folder becomes a workspace, is found by id, name and path, and is deleted',
      check: inFolder(async ({ request }, root) => {
        const creation = await request('POST', '/api/workspaces', { root_dir: root, name: 'shop' })
        assert.equal(creation.status, 201, textOf(creation))
        const { id, root_dir: dir } = creation.body.workspace
        assert.equal(dir, root)
        for (const reference of [id, 'shop']) {
          const { status, body } = await request('GET', `/api/workspaces/${reference}`)
          assert.deepEqual([status, body.workspace?.id], [200, id], reference)
        }
        await mkdir(path.join(root, 'deep'))
        const at = await request('GET', `/api/workspaces?path=${encodeURIComponent(path.join(root, 'deep'))}`)
        assert.deepEqual(at.body.workspaces?.map(idOf), [id], `the workspace around a folder: ${textOf(at)}`)
        const renamed = await request('PATCH', `/api/workspaces/${id}`, { name: 'store' })
        assert.deepEqual([renamed.status, renamed.body.workspace?.name], [200, 'store'], textOf(renamed))
        const removal = await request('DELETE', `/api/workspaces/${id}`)
        assert.ok(removal.status < 300, textOf(removal))
        const after = await request('GET', `/api/workspaces/${id}`)
        assert.deepEqual([after.status, after.body.code], [404, 'workspace_not_found'])
      }),
    },
    {
      name: 'a folder is one workspace, and a path without a folder is refused',
      check: inFolder(async ({ request }, root) => {
        const { body } = await request('POST', '/api/workspaces', { root_dir: root })
        await request('POST', '/api/workspaces', { root_dir: root })
        const { workspaces } = (await request('GET', `/api/workspaces?path=${encodeURIComponent(root)}`)).body
        assert.deepEqual(workspaces.map(idOf), [body.workspace.id])
        const none = await request('POST', '/api/workspaces', { root_dir: path.join(root, 'none') })
        assert.ok(none.status >= 400 && none.status < 500, textOf(none))
        await request('DELETE', `/api/workspaces/${body.workspace.id}`)
      }),
    },
  ],
  vault: [
    {
      name: 'a secret is listed without its value, counts its versions, survives a key rotation, and is deleted',
      check: async ({ request }) => {
        const [ref, values] = ['vault:hooks/behaviour/token', ['behaviour-secret-1', 'behaviour-secret-2']]
        const replies: Reply[] = []
        const ask = async (method: string, url: string, body?: unknown) => {
          const reply = await request(method, url, body)
          replies.push(reply)
          return reply
        }
        const metadata = () => ask('GET', `/api/vault/secrets/metadata?ref=${ref}`)
        for (const [n, secret_value] of values.entries()) {
          const put = await ask('PUT', '/api/vault/secrets', { ref, secret_value })
          assert.deepEqual(
            [put.status, put.body.secret?.version, put.body.secret?.present],
            [200, n + 1, true],
            textOf(put),
          )
        }
        const { secrets } = (await ask('GET', '/api/vault/secrets?prefix=hooks/behaviour/')).body
        assert.deepEqual(
          secrets?.map((secret: { ref: string }) => secret.ref),
          [ref],
        )
        assert.ok((await ask('POST', '/api/vault/rotate', {})).status < 300)
        const rotated = await metadata()
        assert.deepEqual([rotated.body.secret?.version, rotated.body.secret?.present], [2, true], textOf(rotated))
        assert.ok((await ask('DELETE', `/api/vault/secrets?ref=${ref}`)).status < 300)
        for (const missing of [await metadata(), await ask('DELETE', `/api/vault/secrets?ref=${ref}`)])
          assert.deepEqual([missing.status, missing.body.code], [404, 'vault_secret_not_found'])
        for (const reply of replies) {
          const text = JSON.stringify([reply.headers, reply.body])
          assert.ok(!values.some(value => text.includes(value)), 'a reply contains the value of a secret')
        }
      },
    },
    {
      name: 'a value that occurs in ordinary text, and a reference outside the namespaces, are refused',
      check: async ({ request }) => {
        for (const [ref, secret_value, code] of [
          ['vault:hooks/behaviour-refused/short', 'abc', 'vault_value_short'],
          ['vault:behaviour-none/x', 'behaviour-secret-3', 'vault_ref_invalid'],
        ] as const) {
          const { status, body } = await request('PUT', '/api/vault/secrets', { ref, secret_value })
          assert.deepEqual([status, body.code], [400, code], ref)
        }
        const { secrets } = (await request('GET', '/api/vault/secrets?prefix=hooks/behaviour-refused/')).body
        assert.deepEqual(secrets, [])
      },
    },
  ],
  trust: [
    {
      name: 'trust applies only to reviewed content, ends with a change of a file, and can be revoked',
      check: inFolder(async ({ request }, root) => {
        const file = path.join(root, '.svc', 'agents', 'behaviour', 'AGENT.md')
        await mkdir(path.dirname(file), { recursive: true })
        await writeFile(file, '---\nname: behaviour\ncommand: behaviour-none\n---\nOne.\n')
        const { id } = (await request('POST', '/api/workspaces', { root_dir: root })).body.workspace
        const at = `/api/workspaces/${id}/trust`
        const state = async () => (await request('GET', at)).body.trust
        const { digest, ...first } = await state()
        assert.deepEqual([first.state, first.files], ['untrusted', ['.svc/agents/behaviour/AGENT.md']])
        const other = await request('PUT', at, { digest: `sha256:${'0'.repeat(64)}` })
        assert.deepEqual([other.status, other.body.code, (await state()).state], [409, 'trust_changed', 'untrusted'])
        const consent = await request('PUT', at, { digest })
        assert.deepEqual([consent.status, (await state()).state], [200, 'trusted'], textOf(consent))
        await writeFile(file, '---\nname: behaviour\ncommand: behaviour-none\n---\nTwo.\n')
        const changed = await state()
        assert.equal(changed.state, 'changed', 'a file was changed after the review')
        assert.notEqual(changed.digest, digest)
        assert.ok((await request('DELETE', at)).status < 300)
        assert.equal((await state()).state, 'untrusted')
        await request('DELETE', `/api/workspaces/${id}`)
      }),
    },
  ],
  notifications: [
    {
      name: 'a preset has a unique name, is enabled and disabled, and deleted; a built-in one stays',
      check: async ({ request }) => {
        const at = '/api/notifications/presets'
        const preset = { name: 'behaviour', events: ['task.failed'], targets: [], enabled: false }
        assert.equal((await request('POST', at, preset)).status, 201)
        const twice = await request('POST', at, preset)
        assert.deepEqual([twice.status, twice.body.code], [409, 'preset_duplicate_name'])
        const one = await request('GET', `${at}/behaviour`)
        assert.deepEqual([one.body.preset?.events, one.body.preset?.enabled], [preset.events, false], textOf(one))
        assert.ok((await request('DELETE', `${at}/behaviour`)).status < 300)
        const missing = await request('GET', `${at}/behaviour`)
        assert.deepEqual([missing.status, missing.body.code], [404, 'preset_not_found'])
        const { presets } = (await request('GET', at)).body
        const builtIn = presets?.find((each: { built_in: boolean }) => each.built_in)
        if (!builtIn) return
        const refusal = await request('DELETE', `${at}/${builtIn.name}`)
        assert.equal(refusal.body?.code, 'preset_builtin_protected', textOf(refusal))
      },
    },
  ],
  audit: [
    {
      name: 'a change is an entry with its actor and request, the newest first, and the chain verifies to its head',
      check: inFolder(async ({ request }, root) => {
        const { id } = (await request('POST', '/api/workspaces', { root_dir: root })).body.workspace
        const { entries } = (await request('GET', `/api/audit?subject=${id}`)).body
        assert.equal(entries?.[0]?.action, 'workspace.created')
        assert.equal(entries[0].request, 'POST /api/workspaces')
        assert.ok(entries[0].actor?.kind)
        const before = (await request('GET', '/api/audit/verify')).body
        await request('PATCH', `/api/workspaces/${id}`, { name: 'behaviour-audit' })
        const after = (await request('GET', '/api/audit/verify')).body
        assert.deepEqual([before.status, after.status], ['ok', 'ok'])
        assert.ok(after.last > before.last && after.head !== before.head, 'a change moves the head of the chain')
        const expected = await request('GET', `/api/audit/verify?expect=${before.head}`)
        assert.equal(expected.body.status, 'ok', 'an earlier head is still in the chain')
        await request('DELETE', `/api/workspaces/${id}`)
      }),
    },
  ],
  events: [
    {
      name: 'each change is one event, in order and with its subject, and is readable before the reply',
      check: inFolder(async ({ request }, root) => {
        const last = (await request('GET', '/api/logs?limit=1')).body.last_seq
        const { id } = (await request('POST', '/api/workspaces', { root_dir: root })).body.workspace
        await request('PATCH', `/api/workspaces/${id}`, { name: 'behaviour-events' })
        await request('DELETE', `/api/workspaces/${id}`)
        const { events } = (await request('GET', `/api/logs?after_seq=${last}&component=workspace`)).body
        const own = events.filter((event: { content?: { id?: string } }) => event.content?.id === id)
        assert.deepEqual(
          own.map((event: { type: string }) => event.type),
          ['workspace.created', 'workspace.updated', 'workspace.deleted'],
        )
        const numbers: number[] = own.map((event: { seq: number }) => event.seq)
        assert.deepEqual(
          numbers,
          [...new Set(numbers)].sort((one, other) => one - other),
          'numbers rise',
        )
        const rest = (await request('GET', `/api/logs?after_seq=${numbers[1]}&component=workspace`)).body.events
        assert.equal(rest.find((event: { content?: { id?: string } }) => event.content?.id === id)?.seq, numbers[2])
      }),
    },
  ],
  heartbeats: [
    {
      name: 'an unknown agent has no heartbeat and is not woken',
      check: async ({ request }) => {
        const at = '/api/agents/behaviour-none/heartbeat'
        const status = await request('GET', `${at}/status`)
        assert.deepEqual([status.status, status.body.code], [404, 'agent_not_found'])
        const wake = await request('POST', `${at}/wake`, { session_id: '', source: 'manual' })
        assert.deepEqual([wake.status, wake.body.code], [404, 'agent_not_found'])
      },
    },
  ],
}

/** Milliseconds for a route to answer. */
const ANSWER_MS = 10_000
/** A name that nothing has, for the parameters of paths. */
const NONE = 'behaviour-none'

/**
 * Compares a replacement with its original, each in its own home: every route is called for things that do not exist, and the
 * answers must have the same status, code and members. Streaming routes are skipped.
 * @throws AssertionError that lists the differences
 */
export async function answersAlike(plugin: Plugin, original: Subject, replacement: Subject): Promise<number> {
  const routes = (plugin.surface.routes ?? []).filter(isPlain)
  const different: string[] = []
  for (const route of routes) {
    const [was, is] = [await answerOf(original, route), await answerOf(replacement, route)]
    if (was !== is) different.push(`${route.method} ${route.path}: ${was} of ${plugin.name}, and ${is} of this`)
  }
  assert.deepEqual(different, [])
  return routes.length
}

const isPlain = ({ replies, contentType, body }: Route<never>) =>
  !(101 in replies) && contentType === undefined && !(body && 'as' in body)

async function answerOf({ request, time }: Subject, { method, path: at, body }: Route<never>): Promise<string> {
  const url = at.replace(/\{[^}]+\}/g, NONE)
  const reply = await within(time.clock, ANSWER_MS, request(method, url, method === 'GET' || !body ? undefined : {}))
  const members = Object.keys(Object(reply.body)).sort()
  return `${reply.status} ${reply.status < 400 ? members.join(',') : reply.body?.code}`
}

const idOf = ({ id }: { readonly id: string }) => id

const textOf = ({ status, body }: Reply) => `${status} ${JSON.stringify(body)}`
