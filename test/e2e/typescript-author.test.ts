// proof, timeout: 300s: the whole way of an author who writes TypeScript, with the built program
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed } from './installed.js'

const root = path.join(import.meta.dirname, '../..')
const name = 'acme.typed'
const test = suite<{ at: Installed; folder: string }>('an extension in TypeScript')
test.before(context => {
  // `npm run build` makes them, and `scripts/build.mjs --code` does not.
  if (!existsSync(path.join(root, 'dist/types'))) compile(root, '-p', 'tsconfig.build.json', '--outDir', 'dist/types')
  context.at = new Installed()
  context.folder = path.join(context.at.folder, name)
})
test.after(({ at }) => at.remove())

/** Runs the compiler of TypeScript. @returns what it says; it fails where that is something */
function compile(cwd: string, ...args: string[]): string {
  try {
    return execFileSync(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), ...args], {
      cwd,
      encoding: 'utf8',
    })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

/** What `npm install` leaves, with svc linked from its folder and a valibot of the author's own. */
function installPackages(folder: string): void {
  const packages = path.join(folder, 'node_modules')
  mkdirSync(path.join(packages, '.bin'), { recursive: true })
  mkdirSync(path.join(packages, '@types'))
  for (const each of ['typescript', 'esbuild', '@types/node'])
    symlinkSync(path.join(root, 'node_modules', each), path.join(packages, each))
  symlinkSync(root, path.join(packages, 'svc'))
  symlinkSync('../svc/dist/bin/svc', path.join(packages, '.bin/svc'))
  cpSync(path.join(root, 'node_modules/valibot'), path.join(packages, 'valibot'), { recursive: true })
}

const edit = (file: string, from: string, to: string) => {
  const text = readFileSync(file, 'utf8')
  assert.ok(text.includes(from), `${file} has ${from}`)
  writeFileSync(file, text.replace(from, to))
}

const KINDS = `import { kind, type SpecOf } from 'svc/plugin'
import * as v from 'valibot'

export const Note = kind({ name: 'acme.note', spec: v.object({ title: v.string() }), maxBytes: 4096 })
export const title = (spec: SpecOf<typeof Note>): string => spec.title
// @ts-expect-error: the spec is known, and has no such member
export const wrong = (spec: SpecOf<typeof Note>) => spec.colour
`

test('the template of init type-checks with svc linked and a second copy of valibot', async ({ at, folder }) => {
  await at.svc('extension', 'init', name, '--form', 'typescript')
  const { devDependencies } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  assert.equal(Object.keys(devDependencies), ['@types/node', 'esbuild', 'typescript'])
  const unbundled = await at.run(['extension', 'validate', name])
  assert.match(unbundled.stderr, /extension_bundler_missing[\s\S]*npm install/)
  installPackages(folder)
  writeFileSync(path.join(folder, 'kinds.ts'), KINDS)
  assert.is(compile(folder), '')
})

test('wrong parameters are compiler errors', async ({ folder }) => {
  const main = path.join(folder, 'main.ts')
  edit(main, 'to(query.name)', 'to(query.nam)')
  assert.match(compile(folder), /main\.ts\(\d+,\d+\): error TS2551/)
  edit(main, 'to(query.nam)', 'to(query.name)')
})

test('the template is valid before the first build, and its tests run', async ({ at, folder }) => {
  assert.not.ok(existsSync(path.join(folder, 'main.js')))
  rmSync(path.join(folder, '.svc'), { recursive: true })
  assert.is((await at.json<{ valid: boolean }>('extension', 'validate', name)).valid, true)
  assert.ok(existsSync(path.join(folder, '.svc/tsconfig.json')), 'a clone has its types after the first command')
  const tested = await at.json<{ failed: number; tests: { name: string }[] }>('extension', 'test', name)
  assert.is(tested.failed, 0, JSON.stringify(tested))
  assert.is(tested.tests.at(-1)?.name, `${name} works`)
})

test('the archive contains no packages, and the daemon runs it', async ({ at }) => {
  const { file, sha256 } = await at.json<{ file: string; sha256: string }>('extension', 'build', name)
  const packed = execFileSync('tar', ['tzf', file], { encoding: 'utf8' })
  assert.match(packed, `${name}/main.js`)
  assert.not.match(packed, /node_modules|\.svc/)
  await at.svc('daemon', 'start')
  await at.svc('extension', 'install', file, '--checksum', sha256)
  assert.match(await at.svc('acme', 'typed', 'Ada'), 'Hello, Ada')
  await at.svc('extension', 'remove', name)
  rmSync(file)
})

test('the folder is installed without its packages and their links', async ({ at }) => {
  await at.svc('extension', 'install', `./${name}`)
  assert.match(await at.svc('acme', 'typed', 'Ada'), 'Hello, Ada')
  const installed = path.join(at.home, 'extensions', name)
  assert.ok(existsSync(path.join(installed, 'main.ts')))
  assert.not.ok(existsSync(path.join(installed, 'node_modules')))
  assert.match(await at.svc('extension', 'verify', name), /Matches\s+yes/)
  await at.svc('extension', 'remove', name)
})

test('a folder without a build is reported', async ({ at, folder }) => {
  rmSync(path.join(folder, 'main.js'))
  const { code, stdout } = await at.run(['extension', 'install', `./${name}`])
  assert.is(code, 1)
  assert.match(stdout, /does not load\n.*svc extension build bundles it from TypeScript/)
  await at.svc('extension', 'remove', name)
})

test('dev bundles and reloads at each change', async ({ at, folder }) => {
  const dev = at.start(['extension', 'dev', name])
  await dev.shows(/linked acme\.typed 0\.1\.0, active/)
  edit(path.join(folder, 'main.ts'), 'Hello,', 'Servus,')
  await dev.shows(/loaded again, version 0\.1\.0, active/)
  assert.match(await at.svc('acme', 'typed', 'Ada'), 'Servus, Ada')
  dev.child.kill('SIGINT')
  await dev.ended
})

test.run()
