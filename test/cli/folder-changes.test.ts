import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { watchFolder } from '../../cli/tasks/folder-changes.js'

const folders: string[] = []
test.after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function folder(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-changes-'))
  folders.push(root)
  for (const [name, text] of Object.entries(files)) put(root, name, text)
  return root
}

function put(root: string, name: string, text: string): void {
  mkdirSync(join(root, name, '..'), { recursive: true })
  writeFileSync(join(root, name), text)
}

const FILES = { 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c', 'node_modules/x.js': 'x', 'with space.txt': 'w' }

function change(root: string): void {
  put(root, 'a.txt', 'changed')
  rmSync(join(root, 'b.txt'))
  put(root, 'deep/new.txt', 'new')
  put(root, 'with space.txt', 'other text')
}

const EXPECTED = [
  { path: 'a.txt', change: 'modified' },
  { path: 'b.txt', change: 'deleted' },
  { path: 'deep/new.txt', change: 'added' },
  { path: 'with space.txt', change: 'modified' },
]

const git = (root: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], { cwd: root, stdio: 'pipe' })

function repository(): string {
  const root = folder(FILES)
  git(root, 'init', '--quiet')
  git(root, 'add', '.')
  git(root, 'commit', '--quiet', '-m', 'one')
  return root
}

test('changes of a folder without git list added, modified and deleted files, without generated folders', async () => {
  const root = folder(FILES)
  const changesOf = await watchFolder(root)
  change(root)
  put(root, 'node_modules/y.js', 'y')
  assert.equal(await changesOf(), { changes: EXPECTED, isComplete: true })
})

test('changes of a repository are the same before and after a commit', async () => {
  const root = repository()
  const changesOf = await watchFolder(root)
  change(root)
  assert.equal(await changesOf(), { changes: EXPECTED, isComplete: true })
  git(root, 'add', '-A')
  git(root, 'commit', '--quiet', '-m', 'two')
  const { changes, head } = await changesOf()
  assert.equal(changes, EXPECTED)
  assert.match(head ?? '', /^[0-9a-f]{40}$/)
})

test('a file that was modified before the run is listed only if it changes again', async () => {
  const root = repository()
  change(root)
  const changesOf = await watchFolder(root)
  assert.equal((await changesOf()).changes, [])
  put(root, 'deep/new.txt', 'newer text')
  assert.equal((await changesOf()).changes, [{ path: 'deep/new.txt', change: 'modified' }])
})

test('no program that a repository or a nested repository configures is run', async () => {
  const root = repository()
  const ran = `touch '${join(root, 'ran')}'; cat`
  const nested = join(root, 'sub')
  mkdirSync(nested)
  for (const args of [
    ['init', '-q'],
    ['commit', '-q', '--allow-empty', '-m', 'one'],
  ])
    git(nested, ...args)
  put(root, 'sub/f', 'one')
  put(root, 'sub/.gitattributes', '* filter=x')
  git(nested, 'add', '.')
  git(nested, 'config', 'filter.x.clean', ran)
  put(root, 'sub/f', 'two')
  git(root, 'update-index', '--add', '--cacheinfo', `160000,${git(nested, 'rev-parse', 'HEAD').toString().trim()},sub`)
  put(root, '.gitmodules', '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
  put(root, '.gitattributes', '* filter=x')
  git(root, 'config', 'core.fsmonitor', ran)
  git(root, 'config', 'filter.x.clean', ran)
  const changesOf = await watchFolder(root)
  put(root, 'a.txt', 'changed')
  assert.equal((await changesOf()).changes, [{ path: 'a.txt', change: 'modified' }])
})

test('a repository that appears in a folder is listed at the next comparison, without running its programs', async () => {
  const root = folder({ 'a.txt': 'a' })
  const changesOf = await watchFolder(root)
  git(root, 'init', '-q')
  put(root, '.gitattributes', '* filter=x')
  git(root, 'add', 'a.txt')
  git(root, 'config', 'filter.x.clean', `touch '${join(root, 'ran')}'; cat`)
  assert.equal((await changesOf()).changes, [{ path: '.gitattributes', change: 'added' }])
  const again = await watchFolder(root)
  put(root, 'a.txt', 'other')
  assert.equal((await again()).changes, [{ path: 'a.txt', change: 'modified' }])
})

test('a filter in the global git configuration of the user runs', async () => {
  const root = repository()
  const configured = join(folder({ config: '[filter "up"]\n\tclean = tr a-z A-Z\n' }), 'config')
  const before = process.env.GIT_CONFIG_GLOBAL
  process.env.GIT_CONFIG_GLOBAL = configured
  try {
    put(root, '.gitattributes', 'a.txt filter=up')
    put(root, 'a.txt', 'upper')
    git(root, 'add', '.')
    git(root, 'commit', '-qm', 'upper')
    const changesOf = await watchFolder(root)
    put(root, 'a.txt', 'Upper')
    assert.equal((await changesOf()).changes, [], 'it is the same to git')
  } finally {
    if (before === undefined) delete process.env.GIT_CONFIG_GLOBAL
    else process.env.GIT_CONFIG_GLOBAL = before
  }
})

test('a submodule whose commit was staged is listed', async () => {
  const root = repository()
  const changesOf = await watchFolder(root)
  git(root, 'update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},sub`)
  assert.equal((await changesOf()).changes, [{ path: 'sub', change: 'added' }])
})

test('the first commit of a repository lists the added files', async () => {
  const root = folder({})
  git(root, 'init', '-q')
  const changes = await watchFolder(root)
  put(root, 'a.txt', 'a')
  git(root, 'add', '.')
  git(root, 'commit', '-qm', 'first')
  assert.equal((await changes()).changes, [{ path: 'a.txt', change: 'added' }])
})

test.run()
