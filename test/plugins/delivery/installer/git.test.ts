// proof, timeout: 120s: real repositories
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { operator } from '../../../../kernel/plugin.js'
import { base } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { contents, faultFrom, files, scene } from './scene.js'
import { manifest } from './tarball.js'

const { installer, home, kernel, close } = await scene()
const work = await temporaryFolder('repositories')
const inside = path.join(home, 'extensions')
const owned = path.join(work, 'owned')

test.after(async () => {
  await close()
  await rm(work, { recursive: true })
})

const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always']
const git = (folder: string, ...args: string[]) =>
  execFileSync('git', [...identity, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    .toString()
    .trim()

/** A repository with one commit of these files. */
async function repository(name: string, texts: Record<string, string> = {}): Promise<string> {
  const folder = path.join(work, name)
  await mkdir(folder)
  git(folder, 'init', '-q', '-b', 'main')
  await files(folder, { 'extension.toml': manifest(name), ...texts })
  commit(folder)
  return folder
}

function commit(folder: string): string {
  git(folder, 'add', '-A')
  git(folder, 'commit', '-qm', 'change')
  return git(folder, 'rev-parse', 'HEAD')
}

const unverified = { source: 'git', allowUnverified: true } as const

test('a repository is installed from its objects; an update takes the head of its branch', async () => {
  const folder = await repository('plain', { 'bin/run': '#!/bin/sh\n' })
  await chmod(path.join(folder, 'bin/run'), 0o755)
  const first = commit(folder)
  git(folder, 'tag', 'v1')
  const checksum = 'f'.repeat(40)
  const mismatch = await faultFrom(installer.install({ source: 'git', path: folder, checksum }, operator))
  assert.is(mismatch.code, 'extension_archive_digest_mismatch')
  assert.is(mismatch.details?.actual, first)
  assert.is(
    (await faultFrom(installer.install({ source: 'git', path: folder }, operator))).code,
    'extension_checksum_unverified',
  )
  const verified = await installer.install({ source: 'git', path: folder, checksum: first, version: 'main' }, operator)
  assert.equal([verified.commit, verified.decision, verified.tier], [first, 'verified', 'marketplace'])
  assert.equal(await contents(path.join(inside, 'plain')), {
    'extension.toml': manifest('plain'),
    'bin/run': '#!/bin/sh\n',
  })
  assert.ok((await installer.verify('plain', operator)).matches, 'with its modes')
  await files(folder, { 'extension.toml': manifest('plain', '1.1.0') })
  const second = commit(folder)
  const { current } = await installer.update('plain', { allowUnverified: true }, operator)
  assert.equal([current.version, current.commit], ['1.1.0', second])
  const back = await installer.update('plain', { allowUnverified: true, version: 'v1' }, operator)
  assert.equal([back.current.version, back.current.commit], ['1.0.0', first])
  const exact = await installer.update('plain', { version: second, checksum: second }, operator)
  assert.is(exact.current.version, '1.1.0')
  assert.equal(await readdir(path.join(inside, '.staging')), [])
})

test('an install from git runs no hooks or filters and reads no settings of the repository or the user', async () => {
  const folder = await repository('hostile', { '.gitattributes': '* filter=evil\n', file: 'as it is\n' })
  const evil = path.join(work, 'evil')
  const script = `#!/bin/sh\ntouch ${owned}\ncat\n`
  await writeFile(evil, script, { mode: 0o755 })
  const hooks = ['post-checkout', 'post-merge', 'reference-transaction', 'pre-auto-gc', 'post-index-change']
  const userHome = await files(path.join(work, 'user'), {
    '.gitconfig': `[core]\nhooksPath = ${work}/user/hooks\nfsmonitor = ${evil}\n[filter "evil"]\nsmudge = ${evil}\n
      [url "${path.join(work, 'plain')}"]\ninsteadOf = ${folder}\n[init]\ntemplateDir = ${work}/user/template\n`,
  })
  for (const place of [`${userHome}/hooks`, `${userHome}/template/hooks`, `${folder}/.git/hooks`]) {
    await files(place, Object.fromEntries(hooks.map(name => [name, script])))
    for (const name of hooks) await chmod(path.join(place, name), 0o755)
  }
  const reader = await scene({}, { env: { PATH: process.env.PATH, HOME: userHome } })
  try {
    await reader.installer.install({ ...unverified, path: folder }, operator)
    assert.is((await contents(path.join(reader.home, 'extensions/hostile'))).file, 'as it is\n')
    assert.not.ok((await readdir(work)).includes('owned'), 'a program of the repository or the user was run')
  } finally {
    await reader.close()
  }
})

test('a link in the tree and a submodule are refused', async () => {
  const linked = await repository('linked')
  await symlink('/etc/passwd', path.join(linked, 'passwd'))
  commit(linked)
  assert.is((await faultFrom(installer.install({ ...unverified, path: linked }, operator))).details?.reason, 'link')

  const nested = await repository('nested')
  git(nested, 'submodule', 'add', '-q', path.join(work, 'linked'), 'inner')
  commit(nested)
  const fault = await faultFrom(installer.install({ ...unverified, path: nested }, operator))
  assert.is(fault.details?.reason, 'submodule', fault.message)
})

test('a tree with .., .git or names that differ only by case is refused', async () => {
  const odd = await repository('odd')
  const blob = git(odd, 'rev-parse', 'HEAD:extension.toml')
  for (const [names, reason] of [
    [['A', 'a'], 'name_collision'],
    [['..'], undefined],
    [['.git'], undefined],
  ] as const) {
    const lines = [...names, 'extension.toml'].map(name => `100644 blob ${blob}\t${name}`)
    const tree = execFileSync('git', ['mktree'], { cwd: odd, input: `${lines.join('\n')}\n` })
      .toString()
      .trim()
    git(odd, 'update-ref', 'refs/heads/main', git(odd, 'commit-tree', tree, '-m', 'odd'))
    const fault = await faultFrom(installer.install({ ...unverified, path: odd }, operator))
    // What git itself does not take over is refused while it is fetched.
    assert.is(fault.code, reason === undefined ? 'extension_source_unreachable' : 'extension_content_refused')
    assert.is(fault.details?.reason, reason)
  }
})

for (const url of [
  '--upload-pack=touch',
  '-u',
  'ext::sh -c "touch owned"',
  'file:///tmp',
  'git://host/x',
  'fd::7',
  'ssh://-oProxyCommand=touch/x',
  'ssh://-l@host/x',
  'https://me:hunter2@host/x.git',
  'me@-host:x',
  'me@host:-x',
]) {
  test(`${url} is no repository`, async () => {
    const fault = await faultFrom(installer.install({ ...unverified, path: url }, operator))
    assert.is(fault.code, 'extension_source_invalid', fault.message)
    assert.not.match(fault.message, /hunter2/)
  })
}

for (const version of ['--upload-pack=x', '-x', 'a..b', 'a:b', '+a', 'a b', '@{u}', 'refs/../x', ''])
  test(`${JSON.stringify(version)} is not a branch, tag or commit`, async () => {
    const fault = await faultFrom(installer.install({ ...unverified, path: work, version }, operator))
    assert.is(fault.code, 'extension_source_invalid')
  })

test('an invalid repository and a missing branch are named', async () => {
  for (const request of [{ path: work }, { path: path.join(work, 'plain'), version: 'nowhere' }]) {
    const fault = await faultFrom(installer.install({ ...unverified, ...request }, operator))
    assert.is(fault.code, 'extension_source_unreachable', fault.message)
  }
})

test('a missing git is named in the fault', async () => {
  const bare = await scene({}, { env: { PATH: '/nowhere' } })
  const fault = await faultFrom(bare.installer.install({ ...unverified, path: path.join(work, 'plain') }, operator))
  assert.is(fault.code, 'extension_git_unavailable', fault.message)
  await bare.close()
})

test('no process remains', () => {
  const own = kernel.host.plugins().filter(({ name }) => !base.some(one => one.name === name))
  assert.is(own.length, 1)
  assert.not.match(execFileSync('ps', ['-eo', 'args']).toString(), new RegExp(`${home}`))
})

test.run()
