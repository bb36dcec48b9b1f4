import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'

let world: World
/** No session can be made. */
let refuses = false
/** The folder of a new session is no folder: nothing can be written into its journal. */
let spoils = false
const refusing = definePlugin({ name: 'test.refusing', version: '1.0.0', requires: { sessions: Sessions } }).surface({
  taps: [
    surfaceOf<unknown>().tap(
      Sessions,
      ({ points }) => points.preCreate,
      () => wish => (refuses ? { ...wish, deny: 'none today' } : undefined),
    ),
    surfaceOf<unknown>().tap(
      Sessions,
      ({ points }) => points.postCreate,
      () =>
        ({ id }) => {
          if (!spoils) return
          const folder = path.join(world.home, 'sessions', id)
          rmSync(folder, { recursive: true })
          writeFileSync(folder, '')
        },
    ),
  ],
})
let repository: string
let beside: string

const git = (...args: string[]) => {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
  const { status, stdout, stderr } = spawnSync('git', [...identity, ...args], { cwd: repository, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}

test.before(async () => {
  const folder = realpathSync(await temporaryFolder('fork'))
  repository = path.join(folder, 'work')
  beside = path.join(folder, 'work.worktrees')
  mkdirSync(repository)
  git('init', '-q', '-b', 'main')
  writeFileSync(path.join(repository, 'a.txt'), 'one\n')
  world = await openWorld({ root: repository, plugins: [refusing] })
  await world.agent('plain')
  git('add', '-A')
  git('commit', '-qm', 'first')
  const planted = path.join(repository, '.git', 'hooks', 'post-checkout')
  writeFileSync(planted, `#!/bin/sh\ntouch ${folder}/hooked\n`)
  chmodSync(planted, 0o755)
})
test.after(async () => {
  await world.close()
  rmSync(path.dirname(repository), { recursive: true, force: true })
})

const fork = (at: string, body: Reply) => world.kernel.request('POST', `${at}/worktree-fork`, body)
const workspaces = async () => (await world.kernel.request('GET', '/api/workspaces')).body.workspaces.length
const sessions = async () => (await world.kernel.request('GET', '/api/sessions')).body.page.total

test('a fork continues the conversation in its own worktree and branch', async () => {
  const { id, at } = await world.session('plain')
  await world.prompt(at, 'say remember this')
  const made = await fork(at, { confirmed: true, new_worktree: { name: 'try-it' } })
  assert.is(made.status, 201, JSON.stringify(made.body))
  const { session } = made.body
  assert.equal([session.worktree_id, session.workspace_path], ['try-it', path.join(beside, 'try-it')])
  assert.equal([session.lineage.parent_session_id, session.lineage.spawn_depth], [id, 0])
  assert.ok(existsSync(path.join(beside, 'try-it', 'a.txt')))
  assert.match(git('branch', '--list', 'svc/try-it'), /try-it/)
  assert.not(existsSync(path.join(path.dirname(repository), 'hooked')), 'no hook of the repository ran')
  const there = `/api/workspaces/${session.workspace_id}/sessions/${session.id}`
  assert.match(JSON.stringify(await world.events(there)), /remember this/)
  assert.match(agentText(await world.prompt(there, 'echo')), /remember this/, 'the agent is told')
  assert.match(JSON.stringify((await world.events(at)).at(-1)), /done/, 'the other one is as it was')
  const known = await fork(at, { confirmed: true, worktree: 'try-it' })
  assert.equal([known.status, known.body.session.worktree_id], [201, 'try-it'])
})

test('a failed worktree leaves nothing behind', async () => {
  const { at } = await world.session('plain')
  const before = [await workspaces(), await sessions(), git('branch', '--list'), git('worktree', 'list')]
  const code = async (body: Reply) => {
    const reply = await fork(at, body)
    return [reply.status, reply.body.code]
  }
  assert.equal(await code({ confirmed: false }), [400, 'fork_unconfirmed'])
  assert.is((await fork(at, {})).status, 400)
  for (const name of ['../out', '', '-x', 'a b', 'a..b', 'x.lock', 'a/b']) {
    assert.equal(await code({ confirmed: true, new_worktree: { name } }), [400, 'worktree_invalid'], name)
  }
  assert.equal(await code({ confirmed: true, worktree: 'nowhere' }), [400, 'worktree_invalid'])
  assert.equal(await code({ confirmed: true, worktree: repository }), [400, 'worktree_invalid'])
  mkdirSync(path.join(beside, 'taken'), { recursive: true })
  assert.equal(await code({ confirmed: true, new_worktree: { name: 'taken' } }), [409, 'worktree_failed'])
  git('branch', 'svc/there')
  assert.equal(await code({ confirmed: true, new_worktree: { name: 'there' } }), [409, 'worktree_failed'])
  git('branch', '-D', 'svc/there')
  writeFileSync(path.join(repository, '.git', 'HEAD'), 'ref: refs/heads/none\n')
  assert.equal(await code({ confirmed: true, new_worktree: { name: 'none' } }), [409, 'worktree_failed'], 'no commit')
  writeFileSync(path.join(repository, '.git', 'HEAD'), 'ref: refs/heads/main\n')
  assert.equal([await workspaces(), await sessions(), git('branch', '--list'), git('worktree', 'list')], before)
  assert.not(existsSync(path.join(beside, 'none')))
  refuses = true
  assert.equal(await code({ confirmed: true, new_worktree: { name: 'late' } }), [403, 'hook_denied'])
  refuses = false
  assert.equal([await workspaces(), await sessions(), git('branch', '--list'), git('worktree', 'list')], before)
})

test('a fork with an unwritable conversation leaves nothing behind', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say remember this')
  const before = [await workspaces(), await sessions(), git('branch', '--list'), git('worktree', 'list')]
  spoils = true
  const { status } = await fork(at, { confirmed: true })
  spoils = false
  assert.ok(status >= 500, String(status))
  assert.equal([await workspaces(), await sessions(), git('branch', '--list'), git('worktree', 'list')], before)
})

test('a workspace without a repository has no worktrees', async () => {
  const other = realpathSync(await temporaryFolder('plain'))
  const { id } = (await world.kernel.request('POST', '/api/workspaces/resolve', { path: other })).body.workspace
  mkdirSync(path.join(world.home, 'agents', 'anywhere'), { recursive: true })
  writeFileSync(
    path.join(world.home, 'agents', 'anywhere', 'AGENT.md'),
    "---\nname: anywhere\ncommand: 'true'\n---\nx\n",
  )
  const session = (await world.kernel.request('POST', '/api/sessions', { workspace: id, agent_name: 'anywhere' })).body
    .session
  const refused = await fork(`/api/workspaces/${id}/sessions/${session.id}`, { confirmed: true })
  assert.equal([refused.status, refused.body.code], [409, 'worktree_failed'])
  assert.match(refused.body.error, /not a git repository/)
  rmSync(other, { recursive: true, force: true })
})

test.run()
