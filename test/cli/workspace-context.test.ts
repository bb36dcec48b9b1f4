import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { CliFault } from '../../cli/fault.js'
import { currentWorkspace, workspaceId, workspaceReference } from '../../cli/workspace-context.js'

const test = suite<{ folder: string }>('workspace context')
test.before.each(context => {
  context.folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-context-')))
})
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }))

/** A daemon with a session and a workspace around `folder`, which it tells by path. */
function world(folder: string) {
  const requests: string[] = []
  const request = async (_method: string, path: string): Promise<unknown> => {
    requests.push(path)
    if (path === '/api/sessions/ses_1/owner') return { workspace_id: 'ws_session' }
    if (path.startsWith('/api/sessions/')) throw new CliFault('session_not_found', 'there is no such session')
    const wanted = new URLSearchParams(path.split('?')[1]).get('path')
    return { workspaces: wanted === folder ? [{ id: 'ws_here', root_dir: folder }] : [] }
  }
  return { asked: requests, client: { request } }
}

test('a path becomes absolute, an id and a name stay', () => {
  const all = ['.', '..', './a', 'a/b', '/x/../y', 'app', 'ws_0123456789abcdef', '.hidden'].map(text =>
    workspaceReference(text, '/home/me'),
  )
  assert.equal(all, ['/home/me', '/home', '/home/me/a', '/home/me/a/b', '/y', 'app', 'ws_0123456789abcdef', '.hidden'])
})

test('the workspace comes from SVC_WORKSPACE, then the current session, then the current directory', async ({
  folder,
}) => {
  const current = (env: Record<string, string>, cwd = folder) => currentWorkspace({ env, cwd }, world(folder).client)
  assert.is(await current({ SVC_WORKSPACE: 'app', SVC_SESSION_ID: 'ses_1' }), 'app')
  assert.is(await current({ SVC_WORKSPACE: '..' }, join(folder, 'inner')), folder)
  assert.is(await current({ SVC_SESSION_ID: 'ses_1' }), 'ws_session')
  assert.is(await current({ SVC_SESSION_ID: 'ses_gone' }), 'ws_here')
  assert.is(await current({ SVC_WORKSPACE: '' }), 'ws_here')
  assert.is(await current({}, '/'), undefined)
  const { asked: requests, client } = world(folder)
  await currentWorkspace({ env: { SVC_WORKSPACE: 'app' }, cwd: folder }, client)
  assert.equal(requests, [])
})

test('in a session, a name, root or folder is that of its own workspace first: an agent may not list the others', async ({
  folder,
}) => {
  const { client } = world(folder)
  const refused = new CliFault('identity_unauthorized', 'an agent may not call GET /api/workspaces')
  const agent = {
    request: async (method: string, path: string) => {
      if (path === '/api/workspaces') throw refused
      if (path === '/api/workspaces/ws_session') return { workspace: { name: 'app', root_dir: folder } }
      return client.request(method, path)
    },
  }
  const env = { SVC_SESSION_ID: 'ses_1' }
  mkdirSync(join(folder, 'src/inner'), { recursive: true })
  mkdirSync(join(folder, 'nested/.svc'), { recursive: true })
  writeFileSync(join(folder, 'nested/.svc/workspace.toml'), '')
  symlinkSync(tmpdir(), join(folder, 'out'))
  for (const reference of ['app', folder, join(folder, 'src/inner')])
    assert.is(await workspaceId(reference, agent, env), 'ws_session', reference)
  for (const reference of [
    'other',
    `${folder}-other`,
    join(folder, 'gone'),
    join(folder, 'nested'),
    join(folder, 'out'),
  ])
    assert.is(await workspaceId(reference, agent, env).catch(error => error), refused, reference)
})

test.run()
