import assert from 'node:assert/strict'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Plugin, type Route, within } from '../kernel/plugin.js'
import type { Reply, StartedExtension } from './extension.js'

type Subject = Pick<StartedExtension, 'request' | 'time'>

/** A behaviour that other plugins rely on, checked through the routes of its plugin only. */
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

/** Behaviours of the package's plugins that others rely on, by plugin name. A replacement must have them too. */
export const behaviours: Readonly<Record<string, readonly Behaviour[]>> = {
  workspaces: [
    {
      name: 'a folder becomes a workspace, is found by id, name and path, and goes',
      check: inFolder(async ({ request }, root) => {
        const made = await request('POST', '/api/workspaces', { root_dir: root, name: 'shop' })
        assert.equal(made.status, 201, textOf(made))
        const { id, root_dir: dir } = made.body.workspace
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
        const gone = await request('DELETE', `/api/workspaces/${id}`)
        assert.ok(gone.status < 300, textOf(gone))
        const after = await request('GET', `/api/workspaces/${id}`)
        assert.deepEqual([after.status, after.body.code], [404, 'workspace_not_found'])
      }),
    },
    {
      name: 'a folder is one workspace, and what is no folder is none',
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
  heartbeats: [
    {
      name: 'an agent that there is not has no heartbeat, and is not woken',
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
  const asked = (plugin.surface.routes ?? []).filter(isPlain)
  const different: string[] = []
  for (const route of asked) {
    const [was, is] = [await answerOf(original, route), await answerOf(replacement, route)]
    if (was !== is) different.push(`${route.method} ${route.path}: ${was} of ${plugin.name}, and ${is} of this`)
  }
  assert.deepEqual(different, [])
  return asked.length
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
