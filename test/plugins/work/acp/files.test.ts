import { mkdir, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readTextFile, writeTextFile } from '../../../../plugins/work/acp/requests/files.js'
import { PathRefused, resolveInside } from '../../../../plugins/work/acp/requests/paths.js'
import { temporaryFolder } from '../../../harness/kernel.js'

let base: string
let root: string
let outside: string
const judge = (file: string) => resolveInside({ roots: [root], forbidden: '/nowhere' }, file)

test.before.each(async () => {
  base = await realpath(await temporaryFolder('files'))
  root = path.join(base, 'root')
  outside = path.join(base, 'outside')
  for (const folder of [root, outside, path.join(root, 'folder')]) await mkdir(folder)
  await writeFile(path.join(outside, 'file.txt'), 'secret')
  await writeFile(path.join(root, 'folder', 'file.txt'), 'plain')
})
test.after.each(() => rm(base, { recursive: true, force: true }))

/** Puts a symlink to the outside where a folder of the workspace was. */
async function swap(folder: string): Promise<void> {
  await rename(path.join(root, folder), path.join(base, 'aside'))
  await symlink(outside, path.join(root, folder))
}

async function refused(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    thrown => thrown,
  )
  assert.instance(error, PathRefused)
}

test('files are read and written with their folders', async () => {
  assert.is(await readTextFile(await judge('folder/file.txt')), 'plain')
  await writeTextFile(await judge('folder/new/deep/file.txt'), 'x')
  assert.is(await readFile(path.join(root, 'folder/new/deep/file.txt'), 'utf8'), 'x')
  await writeTextFile(await judge('folder/new/deep/file.txt'), 'y')
  assert.is(await readFile(path.join(root, 'folder/new/deep/file.txt'), 'utf8'), 'y')
})

test('a folder replaced by a symbolic link after the check is refused', async () => {
  const file = await judge('folder/file.txt')
  const fresh = await judge('folder/new/file.txt')
  const beside = await judge('folder/beside.txt')
  await swap('folder')
  await refused(readTextFile(file))
  await refused(writeTextFile(file, 'overwritten'))
  await refused(writeTextFile(beside, 'new'))
  await refused(writeTextFile(fresh, 'new'))
  assert.equal(await readdir(outside), ['file.txt'])
  assert.is(await readFile(path.join(outside, 'file.txt'), 'utf8'), 'secret')
})

test('a file replaced by a symbolic link after the check is refused', async () => {
  const file = await judge('folder/file.txt')
  await rm(file)
  await symlink(path.join(outside, 'file.txt'), file)
  await refused(readTextFile(file))
  await refused(writeTextFile(file, 'overwritten'))
  assert.is(await readFile(path.join(outside, 'file.txt'), 'utf8'), 'secret')
})

test.run()
