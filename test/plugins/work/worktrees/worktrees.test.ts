// timeout: 120s
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import trust from '../../../../plugins/access/trust/index.js'
import settings from '../../../../plugins/desk/settings/index.js'
import type { SessionsApi } from '../../../../plugins/work/sessions/api.js'
import { AGENT, openWorld, type World } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { sessionsHolder } from './sessions-holder.js'

interface Scene {
  folder: string
  /** The repository, of which the workspace is a folder. */
  top: string
  world: World
}

const test = suite<Scene>('worktrees')

let sessions: SessionsApi
const holding = sessionsHolder(api => {
  sessions = api
})

const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'protocol.file.allow=always']
const git = (cwd: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('git', [...identity, ...args], { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}
const write = (file: string, text: string) => {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

test.before(async scene => {
  scene.folder = realpathSync(await temporaryFolder('worktrees'))
  const { folder } = scene
  const inner = path.join(folder, 'inner')
  const lib = path.join(folder, 'lib')
  for (const [at, name] of [
    [inner, 'deep.txt'],
    [lib, 'lib.txt'],
  ] as const) {
    mkdirSync(at)
    git(at, 'init', '-q', '-b', 'main')
    write(path.join(at, name), name)
    git(at, 'add', '-A')
    git(at, 'commit', '-qm', 'first')
  }
  git(lib, 'submodule', '--quiet', 'add', inner, 'inner')
  git(lib, 'commit', '-qm', 'inner')
  scene.top = path.join(folder, 'mono')
  const { top } = scene
  mkdirSync(top)
  git(top, 'init', '-q', '-b', 'main')
  git(top, 'submodule', '--quiet', 'add', lib, 'vendor/lib')
  git(top, 'submodule', '--quiet', 'update', '--init', '--recursive')
  write(path.join(top, '.gitignore'), '.env*\n/cache/\nmade.txt\n')
  write(path.join(top, 'packages/web/CLAUDE.md'), 'web\n')
  git(top, 'add', '-A')
  git(top, 'commit', '-qm', 'first')
  write(path.join(top, '.env'), 'A=1\n')
  write(path.join(top, 'packages/web/.env.local'), 'B=1\n')
  write(path.join(top, 'cache/x'), 'x')
  scene.world = await openWorld({
    root: path.join(top, 'packages/web'),
    plugins: [settings, trust, holding],
    env: { ...process.env, GIT_CONFIG_GLOBAL: path.join(folder, 'gitconfig') },
  })
  const agent = `---\nname: plain\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'\n---\n\nYou do what you are told.\n`
  write(path.join(scene.world.home, 'agents/plain/AGENT.md'), agent)
})
test.after(async ({ world, folder }) => {
  await world.close()
  rmSync(folder, { recursive: true, force: true })
})

const fork = async ({ world }: Scene, name: string, at?: string): Promise<Reply> => {
  const from = at ?? (await world.session('plain')).at
  return world.kernel.request('POST', `${from}/worktree-fork`, { confirmed: true, new_worktree: { name } })
}
const set = async ({ world }: Scene, values: Record<string, unknown>) => {
  const changes = Object.entries(values).map(([key, value]) => ({ key: `session.worktree.${key}`, value }))
  const reply = await world.kernel.request('PATCH', '/api/settings/keys', { changes })
  assert.is(reply.status, 200, JSON.stringify(reply.body))
}
const warnings = async ({ world }: Scene, { id, workspace_id }: Reply) =>
  (await world.events(`/api/workspaces/${workspace_id}/sessions/${id}`))
    .filter(({ type }) => type === 'runtime_warning')
    .map(({ content }) => content.text)

test('a workspace below its repository root is the same folder in a worktree, with submodules', async scene => {
  const made = await fork(scene, 'same')
  assert.is(made.status, 201, JSON.stringify(made.body))
  const worktree = path.join(scene.folder, 'mono.worktrees/same')
  assert.is(made.body.session.workspace_path, path.join(worktree, 'packages/web'))
  assert.is(readFileSync(path.join(worktree, 'vendor/lib/lib.txt'), 'utf8'), 'lib.txt')
  assert.is(readFileSync(path.join(worktree, 'vendor/lib/inner/deep.txt'), 'utf8'), 'deep.txt')
  assert.is(
    git(path.join(worktree, 'vendor/lib'), 'rev-parse', 'HEAD'),
    git(path.join(scene.top, 'vendor/lib'), 'rev-parse', 'HEAD'),
  )
  assert.is(git(worktree, 'status', '--porcelain', 'vendor'), '')
  assert.not(existsSync(path.join(worktree, '.env')), 'nothing is carried unless somebody says so')
  assert.equal(await warnings(scene, made.body.session), [])
})

test('an uncommitted folder is refused, and a missing submodule is reported', async scene => {
  const { top, world, folder } = scene
  const modules = path.join(top, '.git/modules/vendor')
  const aside = path.join(folder, 'aside')
  spawnSync('mv', [modules, aside])
  const made = await fork(scene, 'without')
  assert.is(made.status, 201)
  assert.match(
    (await warnings(scene, made.body.session)).join('\n'),
    /^submodule vendor\/lib is empty: it is not checked out/,
  )
  // A pointer into a repository that is none of this one's.
  write(path.join(top, 'vendor/lib/.git'), `gitdir: ${path.join(aside, 'lib')}\n`)
  const lured = await fork(scene, 'lured')
  assert.match((await warnings(scene, lured.body.session)).join('\n'), 'lies outside of the repository')
  assert.not(existsSync(path.join(folder, 'mono.worktrees/lured/vendor/lib/lib.txt')))
  spawnSync('mv', [aside, modules])
  write(path.join(top, 'vendor/lib/.git'), 'gitdir: ../../.git/modules/vendor/lib\n')

  const fresh = path.join(top, 'packages/new')
  mkdirSync(fresh)
  const added = await world.kernel.request('POST', '/api/workspaces/resolve', { path: fresh })
  const session = await world.kernel.request('POST', '/api/sessions', {
    workspace: added.body.workspace.id,
    agent_name: 'plain',
  })
  assert.is(session.status, 201, JSON.stringify(session.body))
  const at = `/api/workspaces/${added.body.workspace.id}/sessions/${session.body.session.id}`
  const refused = await fork(scene, 'new', at)
  assert.equal([refused.status, refused.body.code], [409, 'worktree_failed'])
  assert.match(refused.body.error, 'packages/new is not in the newest commit')
  assert.not(existsSync(path.join(folder, 'mono.worktrees/new')))
  assert.is(git(top, 'branch', '--list', 'svc/new'), '')
})

test('ignored files that match a pattern are copied, and no others', async scene => {
  const { top, folder } = scene
  write(path.join(top, '.worktreeinclude'), '# files of this machine\n/.env.link\n')
  symlinkSync('/etc/hostname', path.join(top, '.env.link'))
  write(path.join(top, 'notes.env'), 'not ignored\n')
  await set(scene, { carry: ['.env', '.env.local', '*.env'] })
  const made = await fork(scene, 'carried')
  assert.is(made.status, 201, JSON.stringify(made.body))
  const worktree = path.join(folder, 'mono.worktrees/carried')
  assert.is(readFileSync(path.join(worktree, '.env'), 'utf8'), 'A=1\n')
  assert.is(readFileSync(path.join(worktree, 'packages/web/.env.local'), 'utf8'), 'B=1\n')
  assert.is(readlinkSync(path.join(worktree, '.env.link')), '/etc/hostname', 'a link, and not what it leads to')
  assert.not(existsSync(path.join(worktree, 'notes.env')), 'it would be committed with the work')
  assert.not(existsSync(path.join(worktree, 'cache')))
  // What was checked out is a link where the working tree has a folder.
  rmSync(path.join(top, 'notes.env'))
  symlinkSync(folder, path.join(top, 'linked'))
  git(top, 'add', 'linked')
  git(top, 'commit', '-qm', 'a link')
  rmSync(path.join(top, 'linked'))
  write(path.join(top, 'linked/.env'), 'C=1\n')
  const second = await fork(scene, 'linked')
  assert.equal(await warnings(scene, second.body.session), [
    'linked/.env is not in the worktree: linked is not a folder there',
  ])
  assert.not(existsSync(path.join(folder, '.env')))
  rmSync(path.join(top, 'linked'), { recursive: true })
  git(top, 'checkout', '-q', 'linked')
  await set(scene, { carry: [] })
})

test('a setup program prepares a worktree before the session; its failure leaves nothing', async scene => {
  const { folder, top } = scene
  const log = path.join(folder, 'log')
  const script = `echo "$PWD $SVC_WORKTREE_BRANCH $SVC_WORKTREE_SOURCE" >>${log}; echo made >made.txt; sleep 300 &`
  await set(scene, { setup: ['sh', '-c', script] })
  const made = await fork(scene, 'set-up')
  assert.is(made.status, 201, JSON.stringify(made.body))
  const place = path.join(folder, 'mono.worktrees/set-up/packages/web')
  assert.is(readFileSync(log, 'utf8'), `${place} svc/set-up ${path.join(top, 'packages/web')}\n`)
  assert.ok(existsSync(path.join(place, 'made.txt')))
  const teardown = `echo "down $SVC_WORKTREE_BRANCH" >>${log}`
  await set(scene, { setup: ['sh', '-c', 'echo one; echo no such tool >&2; exit 3'], teardown: ['sh', '-c', teardown] })
  const failed = await fork(scene, 'fails')
  assert.equal([failed.status, failed.body.code], [409, 'worktree_failed'])
  assert.match(failed.body.error, 'session.worktree.setup failed: no such tool')
  assert.match(readFileSync(log, 'utf8'), /down svc\/fails\n$/)
  assert.not(existsSync(path.join(folder, 'mono.worktrees/fails')))
  await set(scene, { setup: ['sleep', '300'], setup_timeout: '1s' })
  assert.match(
    (await fork(scene, 'slow')).body.error,
    /did not end within 1s \(setting session\.worktree\.setup_timeout\)/,
  )
  await set(scene, { setup: [], teardown: [], setup_timeout: '10m' })
})

test('a trusted workspace configures the setup of its worktrees', async scene => {
  const { world } = scene
  const config = { session: { worktree: { setup: ['sh', '-c', 'echo theirs >made.txt'] } } }
  write(path.join(world.root, '.svc/config.json'), JSON.stringify(config))
  const untrusted = await fork(scene, 'untrusted')
  assert.is(untrusted.status, 201, JSON.stringify(untrusted.body))
  assert.not(existsSync(path.join(untrusted.body.session.workspace_path, 'made.txt')))
  const about = `/api/workspaces/${world.workspaceId}/trust`
  const { digest } = (await world.kernel.request('GET', about)).body.trust
  const trusted = await world.kernel.request('PUT', about, { digest })
  assert.is(trusted.status, 200, JSON.stringify(trusted.body))
  const made = await fork(scene, 'trusted')
  assert.is(made.status, 201, JSON.stringify(made.body))
  assert.is(readFileSync(path.join(made.body.session.workspace_path, 'made.txt'), 'utf8'), 'theirs\n')
  rmSync(path.join(world.root, '.svc'), { recursive: true })
})

test('an unused worktree is removed with its setup, and kept when any of it changed', async scene => {
  const { folder, top, world } = scene
  const { worktrees } = sessions
  const log = path.join(folder, 'log')
  await set(scene, {
    carry: ['.env'],
    setup: ['sh', '-c', 'mkdir -p ../../cache; date >../../cache/now'],
    teardown: ['sh', '-c', `echo "gone $SVC_WORKTREE_BRANCH" >>${log}`],
  })
  const before = [git(top, 'branch', '--list'), git(top, 'worktree', 'list')]
  const unused = await worktrees.of(world.workspaceId, { create: 'unused' })
  assert.ok(existsSync(path.join(unused.folder, 'cache/now')))
  assert.ok(await worktrees.discardUnused(unused))
  assert.match(readFileSync(log, 'utf8'), /gone svc\/unused\n$/)
  assert.not(existsSync(unused.folder))
  assert.equal([git(top, 'branch', '--list'), git(top, 'worktree', 'list')], before)
  assert.is(git(path.join(top, 'vendor/lib'), 'worktree', 'list', '--porcelain').match(/unused/), null)
  const changes: ((at: string) => void)[] = [
    at => writeFileSync(path.join(at, '.env'), 'A=2\n'),
    at => writeFileSync(path.join(at, 'vendor/lib/inner/more.txt'), 'new'),
  ]
  for (const [n, change] of changes.entries()) {
    const used = await worktrees.of(world.workspaceId, { create: `used-${n}` })
    change(used.folder)
    assert.not(await worktrees.discardUnused(used), `${n}`)
    assert.ok(existsSync(used.folder))
  }
  await set(scene, { carry: [], setup: [], teardown: [] })
})

test('the diff of a worktree has commits, files and new files, by page, and starts no program', async scene => {
  const { folder, world, top } = scene
  const base = git(top, 'rev-parse', 'HEAD').trim()
  const made = await fork(scene, 'changed')
  const at = path.join(folder, 'mono.worktrees/changed')
  const mark = path.join(folder, 'started')
  const program = `sh -c 'echo x >> ${mark}; cat'`
  // The repository chooses programs: of its own settings, and of those that a person has for all repositories.
  write(path.join(folder, 'gitconfig'), `[filter "own"]\n\tclean = ${program}\n[diff "own"]\n\ttextconv = ${program}\n`)
  git(top, 'config', 'diff.external', program)
  git(top, 'config', 'diff.evil.command', program)
  write(path.join(at, '.gitattributes'), '*.txt filter=own diff=own\n*.md diff=evil\n')
  write(path.join(at, 'packages/web/CLAUDE.md'), '-- web\n++ two\n')
  git(at, '-c', 'filter.own.clean=cat', 'add', 'packages')
  git(at, 'commit', '-qm', 'in a commit')
  write(path.join(at, 'packages/web/CLAUDE.md'), '++ two\nthree\n')
  write(path.join(at, 'new ünd "odd".txt'), 'new\n')
  write(path.join(at, 'big.txt'), `${'x'.repeat(99)}\n`.repeat(1000))
  write(path.join(at, 'huge.txt'), 'y'.repeat(600 * 1024))
  writeFileSync(path.join(at, 'binary.txt'), Buffer.from([0, 1, 2]))
  const before = git(at, '-c', 'filter.own.clean=cat', 'status', '--porcelain')
  rmSync(mark, { force: true })
  const url = `/api/workspaces/${made.body.session.workspace_id}/worktrees`
  const list = await world.kernel.request('GET', url)
  const found = list.body.worktrees.find(({ name }: Reply) => name === 'changed')
  assert.equal([found.branch, found.folder, found.sessions], ['svc/changed', at, [made.body.session.id]])
  const read = async (query = '') => (await world.kernel.request('GET', `${url}/changed/diff${query}`)).body
  const all = await read()
  assert.equal([all.base, all.total, all.next_after], [base, 6, undefined])
  const files = new Map<string, Reply>(all.files.map((file: Reply) => [file.path, file]))
  assert.equal(
    [...files.values()].map(({ path: file, status, additions, truncated }) => [file, status, additions, truncated]),
    [
      ['.gitattributes', 'added', 2, false],
      ['big.txt', 'added', 1000, true],
      ['binary.txt', 'added', undefined, false],
      ['huge.txt', 'added', undefined, false],
      ['new ünd "odd".txt', 'added', 1, false],
      ['packages/web/CLAUDE.md', 'modified', 2, false],
    ],
  )
  assert.match(files.get('packages/web/CLAUDE.md')?.patch, '@@ -1 +1,2 @@\n-web\n+++ two\n+three\n')
  assert.ok(files.get('big.txt')?.patch.length <= 64 * 1024)
  assert.equal([files.get('huge.txt')?.patch, files.get('binary.txt')?.patch], [undefined, undefined])
  const first = await read('?limit=4')
  assert.equal([first.files.length, first.next_after, first.total], [4, 'huge.txt', 6])
  const second = await read(`?after=${encodeURIComponent(first.next_after)}`)
  assert.equal([second.files.length, second.next_after], [2, undefined])
  assert.not(existsSync(mark), 'a program was started')
  assert.is(git(at, '-c', 'filter.own.clean=cat', 'status', '--porcelain'), before, 'the index is as it was')
  const missing = await world.kernel.request('GET', `${url}/${encodeURIComponent('--all')}/diff`)
  assert.equal([missing.status, missing.body.code], [404, 'worktree_not_found'])
  git(top, 'config', '--unset', 'diff.external')
})

test('a git call that times out names the setting', async scene => {
  const { folder, top } = scene
  write(path.join(folder, 'gitconfig'), '[filter "slow"]\n\tsmudge = sleep 60; cat\n\tclean = cat\n')
  write(path.join(top, '.gitattributes'), 'big filter=slow\n')
  write(path.join(top, 'big'), 'x')
  git(top, 'add', '.gitattributes', 'big')
  git(top, 'commit', '-qm', 'a filter')
  await set(scene, { git_timeout: '2s' })
  const late = await fork(scene, 'late')
  assert.equal([late.status, late.body.code], [409, 'worktree_failed'])
  assert.match(late.body.error, 'git did not end within 2s (setting session.worktree.git_timeout)')
  await set(scene, { git_timeout: '10m' })
})

test('a repository without a commit names the command that makes one', async scene => {
  const { folder, world } = scene
  const empty = path.join(folder, "it's new")
  mkdirSync(empty)
  git(empty, 'init', '-q')
  const added = await world.kernel.request('POST', '/api/workspaces/resolve', { path: empty })
  const { id } = added.body.workspace
  const session = await world.kernel.request('POST', '/api/sessions', { workspace: id, agent_name: 'plain' })
  const refused = await fork(scene, 'none', `/api/workspaces/${id}/sessions/${session.body.session.id}`)
  assert.equal([refused.status, refused.body.code], [409, 'worktree_failed'])
  const { next } = refused.body.details
  assert.match(next, 'commit --allow-empty')
  const commit = next.slice(next.indexOf('git'))
  const env = {
    ...process.env,
    GIT_AUTHOR_NAME: 't',
    GIT_AUTHOR_EMAIL: 't@x',
    GIT_COMMITTER_NAME: 't',
    GIT_COMMITTER_EMAIL: 't@x',
  }
  assert.is(spawnSync('sh', ['-c', commit], { env }).status, 0)
  assert.is((await fork(scene, 'some', `/api/workspaces/${id}/sessions/${session.body.session.id}`)).status, 201)
})

test.run()
