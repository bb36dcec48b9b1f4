// proof, timeout: 300s: whole programs, started some twenty times
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from './installed.js'

const examples = path.join(import.meta.dirname, '../../examples/extensions')
const test = suite<{ at: Installed }>('authoring')
test.before(context => {
  context.at = new Installed()
})
test.after(({ at }) => at.remove())

interface Tested {
  readonly passed: number
  readonly failed: number
  readonly tests: readonly { readonly name: string; readonly error?: string }[]
}
const failures = ({ tests }: Tested) => tests.filter(({ error }) => error !== undefined)

test('the template of init is valid and passes its tests without a daemon', async ({ at }) => {
  for (const [form, name, type] of [
    ['static', 'my-kit', 'resource'],
    ['process', 'my-clock', 'subprocess'],
    ['plugin', 'acme.hello', 'plugin'],
    ['bridge', 'my-chat', 'subprocess'],
  ] as const) {
    await at.svc('extension', 'init', name, '--form', form)
    const valid = await at.json<{ valid: boolean; type: string }>('extension', 'validate', name)
    assert.equal([valid.valid, valid.type], [true, type])
  }
  const tested = await at.json<Tested>('extension', 'test', 'my-clock')
  assert.equal(failures(tested), [])
  assert.is(tested.tests.at(-1)?.name, 'my-clock works')
  // Its process runs only while a bridge needs it.
  const bridge = await at.json<Tested>('extension', 'test', 'my-chat')
  assert.equal(failures(bridge), [])
  assert.is(bridge.tests.at(-1)?.name, 'my-chat takes a message, and delivers an answer')
  const bad = await at.run(['extension', 'init', 'My Things'])
  assert.match(
    bad.stderr,
    /"My Things" is not a valid extension name[\s\S]*extension_name_invalid[\s\S]*svc extension init acme\.my-things/,
  )
  const again = await at.run(['extension', 'init', 'my-kit', '--form', 'static'])
  assert.match(again.stderr, 'extension_exists')
  assert.not.ok(existsSync(at.home) && existsSync(path.join(at.home, 'svc.db')))
})

test('the examples pass the contract checks and their own tests', async ({ at }) => {
  for (const name of [
    'acme.api-keys',
    'acme.files',
    'acme.keep',
    'acme.leases',
    'acme.reminders',
    'acme.secrets',
    'acme.sign-in',
    'acme.signs',
    'acme.webhook',
    'acme.workspaces',
    'release-kit',
  ]) {
    const tested = await at.json<Tested>('extension', 'test', path.join(examples, name))
    assert.equal(failures(tested), [], name)
    assert.ok(tested.passed > 4)
  }
})

test('an extension with leftovers and a failed test are reported by name', async ({ at }) => {
  await at.svc('extension', 'init', 'acme.leaky')
  const main = path.join(at.folder, 'acme.leaky/main.js')
  writeFileSync(main, readFileSync(main, 'utf8').replace('this.kernel = kernel', 'setInterval(() => {}, 60_000)'))
  writeFileSync(
    path.join(at.folder, 'acme.leaky/main.test.mjs'),
    "import { test } from 'node:test'\ntest('mine', () => { throw new Error('no') })\n",
  )
  const { code, stdout } = await at.run(['extension', 'test', 'acme.leaky', '--json'])
  const failed = failures(JSON.parse(stdout))
  assert.is(code, 1)
  assert.equal(
    failed.map(({ name }) => name.slice(0, 9)),
    ['unloading', 'mine'],
  )
  assert.match(failed[0]?.error ?? '', /it leaves behind: a timer, made in main\.js:\d+/)
  const kept = readFileSync(main, 'utf8').replace(
    'setInterval(() => {}, 60_000)',
    'kernel.clock.timeout(9e6, () => {})',
  )
  writeFileSync(main, kept)
  const late = await at.run(['extension', 'test', 'acme.leaky', '--json'])
  assert.match(failures(JSON.parse(late.stdout))[0]?.error ?? '', /it leaves timers behind: \d+ wait/)
})

const NOISY = `import { describe, test } from 'node:test'
test('speaks', () => console.log('said in a test'))
test('complains', () => console.error('written to standard error'))
describe('a group', () => {
  test('hangs', () => new Promise(resolve => setTimeout(resolve, 600_000)))
  test('comes after', () => {})
})
`

test('tests are selected by name, their output is shown, and a hanging test is named', async ({ at }) => {
  await at.svc('extension', 'init', 'my-noise', '--form', 'static')
  writeFileSync(path.join(at.folder, 'my-noise/main.test.mjs'), NOISY)
  const chosen = await at.json<Tested & { output: string }>('extension', 'test', 'my-noise', '--filter', 'speak')
  assert.equal(
    chosen.tests.map(({ name }) => name),
    ['speaks'],
  )
  assert.is(chosen.output, 'said in a test\n')
  const shown = await at.svc('extension', 'test', 'my-noise', '--filter', 'complains')
  assert.match(shown, /written to standard error\n[\s\S]*ok {4}complains/)
  const none = await at.run(['extension', 'test', 'my-noise', '--filter', 'no such'])
  assert.is(none.code, 2)
  assert.match(none.stderr, 'no test has no such in its name')
  const late = await at.run(['extension', 'test', 'my-noise', '--filter', 'hangs', '--timeout', '10'])
  assert.is(late.code, 1)
  assert.match(late.stdout, /FAIL {2}hangs\nit did not end within the timeout of its file/)
})

test('validate checks the shipped files like loading does, with file, line and key', async ({ at }) => {
  const bundle = path.join(at.folder, 'my-kit/bundles/start.toml')
  const written = readFileSync(bundle, 'utf8')
  const wrong = written
    .replace('prompt = "Say', 'promt = "Say')
    .replace('name = "default"', 'name = "default"\ncolour = 1')
  writeFileSync(bundle, wrong)
  writeFileSync(path.join(at.folder, 'my-kit/agents/helper/AGENT.md'), 'nothing')
  const { code, stdout } = await at.run(['extension', 'validate', 'my-kit', '--json'])
  assert.is(code, 1)
  assert.equal(JSON.parse(stdout).problems.sort(), [
    'bundles/start.toml:13: profiles.0.jobs.0.promt: unknown member',
    'bundles/start.toml:5: profiles.0.colour: unknown member',
  ])
  writeFileSync(bundle, written)
  const agent = JSON.parse((await at.run(['extension', 'validate', 'my-kit', '--json'])).stdout).problems
  assert.match(agent.join('\n'), /^bundles\/start\.toml:\d+: profiles\.0\.agents\.0\.path: agents\/helper\/AGENT\.md: /)
  assert.is((await at.run(['extension', 'build', 'my-kit'])).code, 1)
})

test('validate reports the position in the manifest, the entry of a surface, and the line of code that fails', async ({
  at,
}) => {
  const folder = path.join(at.folder, 'acme.hello')
  const files = ['extension.toml', 'main.js'].map(name => path.join(folder, name))
  const [manifest = '', main = ''] = files
  const [written = '', code = ''] = files.map(file => readFileSync(file, 'utf8'))
  writeFileSync(manifest, `${written}colour = "red"\n`)
  const { stderr } = await at.run(['extension', 'validate', 'acme.hello'])
  assert.match(stderr, /extension\.toml:6: colour: .*\n.*extension_manifest_invalid/)
  writeFileSync(manifest, written)
  const problems = async (text: string) => {
    writeFileSync(main, text)
    return JSON.parse((await at.run(['extension', 'validate', 'acme.hello', '--json'])).stdout).problems
  }
  assert.match(
    (await problems(code.replace('/api/ext/acme.hello/', '/api/')))[0],
    'the route /api/greeting is not below',
  )
  assert.match((await problems(code.replace('v.string() })', 'v.date() })')))[0], 'reply 200')
  assert.match(
    (await problems('export default'))[0],
    /^main\.js cannot be imported: Unexpected .*; to see where: node --check \//,
  )
  const thrown = (await problems("\nthrow new Error('at the top')"))[0]
  assert.match(thrown, /^main\.js cannot be imported: .*acme\.hello\/main\.js:2: at the top$/)
  writeFileSync(
    manifest,
    written.replace(/^main = .*$/m, line => `${line}\nreplaces = "workspaces"`),
  )
  const [lacking] = await problems(code.replace(/version: /, line => `replaces: 'workspaces', ${line}`))
  assert.match(lacking, /it lacks parts of workspaces that are in use: .*route GET \/api\/workspaces/)
  writeFileSync(manifest, written)
  writeFileSync(main, code)
})

test('build is reproducible, a daemon installs the archive, and dev follows a folder until Ctrl-C', async ({ at }) => {
  const build = () => at.json<{ file: string; sha256: string }>('extension', 'build', 'acme.hello')
  const { file, sha256 } = await build()
  assert.equal(await build(), { ...(await build()), sha256 })
  await at.svc('daemon', 'start')
  await at.svc('extension', 'install', file, '--checksum', sha256)
  assert.match(await at.svc('acme', 'hello', 'Ada'), 'Hello, Ada')

  const taken = await at.run(['extension', 'dev', 'acme.hello'])
  assert.match(taken.stderr, 'svc extension disable acme.hello')
  await at.svc('extension', 'remove', 'acme.hello')
  const main = path.join(at.folder, 'acme.hello/main.js')
  const code = readFileSync(main, 'utf8').replace('this.kernel = kernel', "kernel.log.info('it begins', { n: 1 })")
  writeFileSync(main, code)
  const dev = at.start(['extension', 'dev', 'acme.hello'])
  await dev.shows(
    /linked acme\.hello 0\.1\.0, active[\s\S]*info: it begins \{"n":1\}[\s\S]*loaded, version 0\.1\.0, active/,
  )
  writeFileSync(main, `const =\n${code}`)
  await dev.shows(/runs as it was before: .*acme\.hello\/main\.js:1: SyntaxError/)
  // What it does wrong later is told of as well, and neither it nor the daemon ends.
  const late = `setTimeout(() => Promise.reject(new Error('late rejection')), 10)
    setTimeout(() => { throw new Error('late exception') }, 20)
    setTimeout(() => process.exit(3), 30)`
  writeFileSync(main, `${code.replace('Hello,', 'Good day,')}${late}`)
  await dev.shows(/loaded again, version 0\.1\.0, active/)
  for (const text of ['rejection: late rejection', 'exception: late exception', 'exception: a plugin must not call'])
    await dev.shows(new RegExp(`\\[svc\\] failed in (unhandled|uncaught) ${text}`))
  assert.match(await at.svc('acme', 'hello', 'Ada'), 'Good day, Ada')
  dev.child.kill('SIGINT')
  await dev.ended
  assert.match(dev.text(), 'unlinked acme.hello')
  assert.is((await at.run(['extension', 'info', 'acme.hello'])).code, 4)
})

test('dev unlinks at every end; after a kill the doctor names the link and remove unlinks it', async ({ at }) => {
  await at.svc('extension', 'init', 'acme.ends')
  const linked = async () =>
    (await at.json<{ extensions: { name: string }[] }>('extension', 'list')).extensions.filter(
      ({ name }) => name === 'acme.ends',
    ).length
  for (const signal of ['SIGTERM', 'SIGHUP', undefined] as const) {
    const dev = at.start(['extension', 'dev', 'acme.ends'])
    await dev.shows(/loaded, version 0\.1\.0, active/)
    if (signal) dev.child.kill(signal)
    else {
      // Nobody reads any more: it notices with the next line.
      dev.child.stdout?.destroy()
      writeFileSync(path.join(at.folder, 'acme.ends/note.txt'), String(Date.now()))
      await at.svc('extension', 'reload', 'acme.ends')
    }
    await dev.ended
    assert.is(await linked(), 0, `it is linked after ${signal}`)
  }
  const dev = at.start(['extension', 'dev', 'acme.ends'])
  await dev.shows(/loaded, version 0\.1\.0, active/)
  const itemsOf = async () => (await at.json<{ items: { code: string }[] }>('doctor')).items.map(({ code }) => code)
  assert.not.ok((await itemsOf()).includes('extension_linked'))
  dev.child.kill('SIGKILL')
  await dev.ended
  await until(
    async () => (await itemsOf()).includes('extension_linked') || undefined,
    60_000,
    () => 'a finding',
  )
  assert.match(await at.svc('extension', 'remove', 'acme.ends'), 'unlinked acme.ends')
  assert.is(await linked(), 0)
})

const GREET = "export const greet = (name: string) => 'Typed hello, ' + name\n"

test('TypeScript is bundled, installed and run; missing modules and errors are reported by position', async ({
  at,
}) => {
  await at.svc('extension', 'init', 'acme.typed')
  const folder = path.join(at.folder, 'acme.typed')
  const [source, greet] = ['main.ts', 'greet.ts'].map(name => path.join(folder, name)) as [string, string]
  const written = readFileSync(path.join(folder, 'main.js'), 'utf8')
    .replace(/return `Hello.*`/, 'return greet(name)')
    .replace('to(name) {', 'to(name: string): string {')
  writeFileSync(source, `import { greet } from './greet'\n${written}`)
  writeFileSync(greet, GREET)
  rmSync(path.join(folder, 'main.js'))
  const none = await at.run(['extension', 'build', 'acme.typed'])
  assert.is(none.code, 1)
  assert.match(none.stderr, /extension_bundler_missing[\s\S]*npm install --save-dev esbuild --prefix \//)

  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(path.join(import.meta.dirname, '../../node_modules/esbuild'), path.join(folder, 'node_modules/esbuild'))
  writeFileSync(greet, `${GREET})`)
  const wrong = await at.run(['extension', 'build', 'acme.typed'])
  assert.match(wrong.stderr, /greet\.ts:2:1: .*\n.*extension_build_failed\n.*edit greet\.ts, line 2/)

  writeFileSync(greet, GREET)
  // As npm init writes it.
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "commonjs" }')
  assert.match((await at.run(['extension', 'build', 'acme.typed'])).stderr, 'npm pkg set type=module')
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }')
  const { file } = await at.json<{ file: string }>('extension', 'build', 'acme.typed')
  await at.svc('extension', 'install', file)
  assert.match(await at.svc('acme', 'typed', 'Ada'), 'Typed hello, Ada')
  await at.svc('extension', 'disable', 'acme.typed')
  rmSync(path.join(folder, 'node_modules/esbuild'))
  mkdirSync(path.join(at.folder, 'node_modules'))
  symlinkSync(
    path.join(import.meta.dirname, '../../node_modules/esbuild'),
    path.join(at.folder, 'node_modules/esbuild'),
  )
  const dev = at.start(['extension', 'dev', 'acme.typed'])
  await dev.shows(/linked acme\.typed 0\.1\.0, active/)
  writeFileSync(greet, GREET.replace('Typed hello', 'Typed again'))
  await dev.shows(/loaded again, version 0\.1\.0, active/)
  assert.match(await at.svc('acme', 'typed', 'Ada'), 'Typed again, Ada')
  dev.child.kill('SIGINT')
  await dev.ended
  // What made it is not installed.
  assert.not.ok(existsSync(path.join(at.home, 'extensions/acme.typed/node_modules')))
})

test.run()
