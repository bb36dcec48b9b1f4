// proof, timeout: 900s: some thousand processes of git
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { watchFolder } from '../../../../cli/tasks/folder-changes.js'
import { gitCall } from '../../../../kernel/kit/git/index.js'
import type { SessionsApi } from '../../../../plugins/work/sessions/api.js'
import { gitAt, gitPrograms, plantProgram, programMark, templateAt } from '../../../fixtures/git-programs.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { sessionsHolder } from './sessions-holder.js'

let world: World
let sessions: SessionsApi
let folder: string
let template: string

const holding = sessionsHolder(api => {
  sessions = api
})

test.before(async () => {
  folder = realpathSync(await temporaryFolder('programs'))
  template = path.join(folder, 'template')
  mkdirSync(template)
  templateAt(template)
  world = await openWorld({ plugins: [holding] })
})
test.after(async () => {
  await world.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Everything that svc calls git for, on one repository; what fails in it may fail. */
async function useAll(top: string): Promise<void> {
  const changesOf = await watchFolder(top)
  writeFileSync(path.join(top, 'a.txt'), 'changed\n')
  await changesOf()
  const { id } = (await world.kernel.request('POST', '/api/workspaces/resolve', { path: top })).body.workspace
  const { worktrees } = sessions
  const made = await worktrees.of(id, { create: 'kept' }).catch(() => undefined)
  if (made) {
    const theirs = path.join(made.folder, 'sub')
    rmSync(theirs, { recursive: true, force: true })
    cpSync(path.join(top, 'sub'), theirs, { recursive: true })
    writeFileSync(path.join(made.folder, 'sub', 'f'), 'changed\n')
    writeFileSync(path.join(made.folder, 'c.txt'), 'new\n')
    await worktrees.save(made, 'saved')
    await world.kernel.request('GET', `/api/workspaces/${id}/worktrees/kept/diff`)
    assert.not(await worktrees.discardUnused(made))
    await worktrees.of(id, { use: 'kept' })
    const unused = await worktrees.of(id, { create: 'unused' })
    assert.ok(await worktrees.discardUnused(unused))
  }
  const bare = path.join(path.dirname(top), 'bare')
  mkdirSync(bare)
  for (const args of [
    ['init', '-q', '--bare', '--template=', '.'],
    ['fetch', '-q', '--depth=1', '--', top, 'HEAD'],
  ]) {
    const { argv, cwd, env } = gitCall({ args, gitDir: bare, env: process.env, network: true })
    try {
      execFileSync(argv[0] as string, argv.slice(1), { cwd, env, stdio: 'ignore' })
    } catch {}
  }
}

for (const [name, how] of Object.entries(gitPrograms)) {
  test(`no git operation starts a program named by a repository: ${name}`, async () => {
    const { start } = how
    if (start) {
      const { top, mark } = plantProgram(template, path.join(folder, 'control'), how)
      try {
        start(gitAt(top))
      } catch {}
      assert.ok(programMark(mark), 'git itself starts it')
    }
    const { top, mark } = plantProgram(template, path.join(folder, name.replace(/\W+/g, '-')), how)
    await useAll(top)
    assert.is(programMark(mark), undefined)
  })
}

test('a saved worktree has all changes except submodule changes, also with a link in place of a folder', async () => {
  const { top } = plantProgram(template, path.join(folder, 'saved'), { plant: () => {} })
  const git = (at: string, ...args: string[]) => execFileSync('git', args, { cwd: at, encoding: 'utf8' })
  const { id } = (await world.kernel.request('POST', '/api/workspaces/resolve', { path: top })).body.workspace
  const made = await sessions.worktrees.of(id, { create: 'kept' })
  assert.is(git(made.folder, 'status', '--porcelain'), '')
  assert.match(git(top, 'worktree', 'list'), /work\.worktrees\/kept .*\[svc\/kept\]/)
  rmSync(path.join(made.folder, 'b.txt'))
  mkdirSync(path.join(made.folder, 'b.txt'))
  writeFileSync(path.join(made.folder, 'b.txt', 'deep\nname'), 'new\n')
  const commit = await sessions.worktrees.save(made, 'saved')
  assert.is(git(made.folder, 'status', '--porcelain'), '', 'the index is handed back')
  assert.equal(
    [git(top, 'rev-parse', 'svc/kept').trim(), git(top, 'log', '-1', '--format=%an %s', 'svc/kept').trim()],
    [commit, 'svc saved'],
  )
  assert.is(git(top, 'show', 'svc/kept:b.txt/deep\nname'), 'new\n')
  git(made.folder, 'checkout', '-q', '--detach')
  writeFileSync(path.join(made.folder, 'a.txt'), 'detached\n')
  assert.is(await sessions.worktrees.save(made, 'again'), git(made.folder, 'rev-parse', 'HEAD').trim())
})

test('an index that is a symbolic link is refused, and its target is unchanged', async () => {
  const { top } = plantProgram(template, path.join(folder, 'linked'), { plant: () => {} })
  const { id } = (await world.kernel.request('POST', '/api/workspaces/resolve', { path: top })).body.workspace
  const made = await sessions.worktrees.of(id, { create: 'kept' })
  const outside = path.join(folder, 'profile')
  writeFileSync(outside, 'mine')
  execFileSync('ln', ['-sf', outside, path.join(made.gitDir, 'index')])
  writeFileSync(path.join(made.folder, 'c.txt'), 'new\n')
  const refused = await sessions.worktrees.save(made, 'saved').then(
    () => undefined,
    error => error.code,
  )
  assert.is(refused, 'worktree_failed')
  assert.is(readFileSync(outside, 'utf8'), 'mine')
})

test.run()
