import { execFileSync } from 'node:child_process'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { add, scene } from './workspace-scene.js'

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd, encoding: 'utf8' })
const status = (cwd: string) => git(cwd, 'status', '--short', '--untracked-files=all').trim()

test('git status omits the identity file of a workspace and shows user files beside it', async () => {
  const { host, root, end } = await scene()
  const top = await root('app')
  git(top, 'init', '-q')
  await add(host, top)
  const deep = path.join(top, 'packages', '[web] #1')
  await mkdir(deep, { recursive: true })
  await add(host, deep)
  assert.is(status(top), '')
  await mkdir(path.join(top, '.svc', 'agents'))
  await writeFile(path.join(top, '.svc', 'agents', 'a.md'), 'x')
  assert.is(status(top), '?? .svc/agents/a.md')

  git(top, 'add', '.')
  git(top, 'commit', '-qm', 'first')
  const linked = path.join(path.dirname(top), 'linked')
  git(top, 'worktree', 'add', '-q', linked)
  const lines = await readFile(path.join(top, '.git', 'info', 'exclude'), 'utf8')
  await rm(path.join(top, '.git', 'info', 'exclude'))
  await add(host, linked)
  assert.is(status(linked), '')
  assert.match(lines, /^\/\.svc\/workspace\.toml$/m)
  assert.is(await readFile(path.join(top, '.git', 'info', 'exclude'), 'utf8'), '/.svc/workspace.toml\n')
  await end()
})

test('nothing is written into a repository that a folder only refers to', async () => {
  const { host, root, end } = await scene()
  const victim = await root('victim')
  git(victim, 'init', '-q')
  const list = path.join(victim, '.git', 'info', 'exclude')
  const before = await readFile(list, 'utf8')
  const pointer = await root('pointer')
  await writeFile(path.join(pointer, '.git'), `gitdir: ${path.join(victim, '.git')}\n`)
  await add(host, pointer)
  const linking = await root('linking')
  await symlink(path.join(victim, '.git'), path.join(linking, '.git'))
  await add(host, linking)
  const own = await root('own')
  git(own, 'init', '-q')
  await rm(path.join(own, '.git', 'info', 'exclude'))
  await symlink(list, path.join(own, '.git', 'info', 'exclude'))
  await add(host, own)
  assert.is(await readFile(list, 'utf8'), before)
  await end()
})

test.run()
