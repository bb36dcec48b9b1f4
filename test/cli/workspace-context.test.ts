import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { CliFault } from '../../cli/fault.js'
import { currentWorkspace, workspaceReference } from '../../cli/workspace-context.js'

const test = suite<{ folder: string }>('workspace context')
test.before.each(context => {
  context.folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-context-')))
})
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }))

/** A daemon with two nested workspaces and one session. */
function world(folder: string) {
  const asked: string[] = []
  const rows = [
    { id: 'ws_outer', root_dir: folder },
    { id: 'ws_inner', root_dir: join(folder, 'inner') },
    { id: 'ws_alike', root_dir: join(folder, 'inn') },
  ]
  const request = async (_method: string, path: string): Promise<unknown> => {
    asked.push(path)
    if (path === '/api/sessions/ses_1/owner') return { workspace_id: 'ws_session' }
    if (path.startsWith('/api/sessions/')) throw new CliFault('session_not_found', 'there is no such session')
    return { workspaces: rows }
  }
  return { asked, client: { request } }
}

test('a path is made absolute, an id and a name stay as they are', () => {
  const all = ['.', '..', './a', 'a/b', '/x/../y', 'app', 'ws_0123456789abcdef', '.hidden'].map(text =>
    workspaceReference(text, '/home/me'),
  )
  assert.equal(all, ['/home/me', '/home', '/home/me/a', '/home/me/a/b', '/y', 'app', 'ws_0123456789abcdef', '.hidden'])
})

test('the order: SVC_WORKSPACE, the session that it runs in, the nearest root around the current directory', async ({
  folder,
}) => {
  const cwd = join(folder, 'inner', 'src')
  mkdirSync(cwd, { recursive: true })
  const current = (env: Record<string, string>, at = cwd) => currentWorkspace({ env, cwd: at }, world(folder).client)
  assert.is(await current({ SVC_WORKSPACE: 'app', SVC_SESSION_ID: 'ses_1' }), 'app')
  assert.is(await current({ SVC_WORKSPACE: '..' }), join(folder, 'inner'))
  assert.is(await current({ SVC_SESSION_ID: 'ses_1' }), 'ws_session')
  assert.is(await current({ SVC_SESSION_ID: 'ses_gone' }), 'ws_inner')
  assert.is(await current({ SVC_WORKSPACE: '' }), 'ws_inner')
  assert.is(await current({}, folder), 'ws_outer')
  assert.is(await current({}, '/'), undefined)
  symlinkSync(cwd, join(folder, 'link'))
  assert.is(await current({}, join(folder, 'link')), 'ws_inner')
  const { asked, client } = world(folder)
  await currentWorkspace({ env: { SVC_WORKSPACE: 'app' }, cwd }, client)
  assert.equal(asked, [])
})

test.run()
