// proof: whole programs that are compiled and started
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-embed-')))
const modules = join(folder, 'node_modules')
const run = promisify(execFile)

/** The package as it is published, in a folder of its own; beside it only what is not built in, and what an author imports. */
test.before(() => {
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
  })
  mkdirSync(modules)
  execFileSync('tar', ['-xzf', join(folder, packed.trim().split('\n').at(-1) as string), '-C', modules])
  execFileSync('mv', [join(modules, 'package'), join(modules, 'svc')])
  for (const name of ['sql.js', 'valibot']) symlinkSync(join(root, 'node_modules', name), join(modules, name))
})
test.after(() => rmSync(folder, { recursive: true, force: true }))

async function node(name: string, code: string): Promise<string> {
  writeFileSync(join(folder, name), code)
  const { stdout, stderr } = await run(process.execPath, [name], { cwd: folder, timeout: 30_000 })
  assert.is(stderr, '')
  return stdout
}

test('the example runs with the packed package', async () => {
  const source = readFileSync(join(root, 'examples', 'embed.ts'), 'utf8')
  const out = await node('embed.mjs', transformSync(source, { loader: 'ts', format: 'esm' }).code)
  const [status, log, greeting, refused, end] = out.trim().split('\n')
  assert.match(status as string, /^\/api\/status: 200 \{/)
  assert.is(log, 'log: greeted world')
  assert.match(greeting as string, '200 {"greeting":"Hello, world"}')
  // Thrown by the plugin's own import of the package: one instance, or it would be a 500.
  assert.match(refused as string, '404 {"error":"nobody is here"')
  assert.is(end, 'closed with 0 errors')
})

test('two kernels in one process serve their homes; one closes, the other runs on, and no global state stays', async () => {
  const out = await node(
    'two.mjs',
    `import { mkdirSync } from 'node:fs'
    const handlers = () => process.eventNames().map(String).sort().join()
    const before = handlers()
    const env = process.env
    process.env = new Proxy(env, { get: (of, name) => { if (name === 'SVC_HOME') console.log('read', name); return of[name] } })
    const { createKernel } = await import('svc')
    const { base, daemon, resources } = await import('svc/plugins')
    const open = home => createKernel({ home, plugins: [...base, daemon, resources], listen: ['socket'] })
    const [a, b] = await Promise.all([open('a'), open('b')])
    const put = (kernel, id) => kernel.inject({ method: 'PUT', url: '/api/resources/some.note/' + id,
      body: { scope: { kind: 'global' }, spec: {}, expected_version: 0 } })
    const ids = async kernel => JSON.parse((await kernel.inject({ method: 'GET', url: '/api/resources?kind=some.note' })).body)
      .records.map(({ id }) => id).join()
    console.log((await put(a, 'in-a')).status, (await put(b, 'in-b')).status, await ids(a), await ids(b))
    console.log((await a.close()).length, await a.inject({ method: 'GET', url: '/api/status' }).catch(error => error.code))
    console.log((await put(b, 'later')).status, await ids(b))
    console.log((await b.close()).length, handlers() === before)`,
  )
  assert.equal(out.trim().split('\n'), ['201 201 in-a in-b', '0 shutting_down', '201 in-b,later', '0 true'])
})

test('the packed program starts and stops a daemon', async () => {
  const home = join(folder, 'home')
  mkdirSync(home)
  writeFileSync(join(home, 'config.json'), '{ "http": { "port": 0 } }')
  const svc = (...args: string[]) =>
    run(process.execPath, [join(modules, 'svc/dist/bin/svc'), ...args, '--json'], {
      env: { PATH: process.env.PATH, HOME: folder, SVC_HOME: home },
    }).then(({ stdout }) => JSON.parse(stdout))
  assert.is((await svc('daemon', 'start')).status, 'started')
  assert.is((await svc('status')).daemon.status, 'ok')
  assert.is((await svc('daemon', 'stop')).status, 'stopped')
})

test.run()
