import { execFileSync } from 'node:child_process'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { annotationOf, Cli, canRunCode, Description } from '../../../../kernel/kit/annotations/index.js'
import type { Route } from '../../../../kernel/plugin.js'
import { writeTypes } from '../../../../plugins/delivery/extensions/authoring/types.js'
import { CodeCache } from '../../../../plugins/delivery/extensions/load/code.js'
import { annotated } from '../../../../plugins/delivery/extensions/version-one/routes.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { hasFailed, isActive, scene } from './scene.js'

/** The values of `svc/plugin` on the day before version 2 began, which extensions of version 1 may use for ever. */
const NAMES_OF_ONE =
  `Callers Collected DiskSpace DropIns Fault Faults FileErrors Host HttpErrors JsonText KIND_NAME KernelErrors
  KernelSettings Listeners Note Patience Progress RecordErrors Requests Servers SettingValues Settings Sockets StoreError
  Streams TokenBucket accepted allowance anonymous backoff canonicalJson channelled created defineErrors definePlugin
  diskFull durableToRead errorBody errorsOf event faultOf isActor isDropIn isFull isOneOf isSchema iso issueText kind maybe
  messageOf noContent noReserve noteBytes ok onBehalfOf openRegularFile openRegularFileSync operationId operator operatorAt
  perConsumer pluginActor readBounded readIfThere readInto readNote readRegularFile readRegularFileSync reasonOf
  recordToWire refuseHandshake registry replaceFile routeOf spending streamed surfaceOf syncing systemClock systemDisk
  token turn typeOf unreadable watch within writeAll`.split(/\s+/)

const manifest = (api: number) => `name = "acme.old"\nversion = "1.0.0"\napiVersion = ${api}\nmain = "main.js"\n`

/** Answers with a text that helpers of three of the entries of today were needed for. */
const MAIN = `import { backoff, definePlugin, issueText, noteBytes, ok, routeOf, TokenBucket } from 'svc/plugin'
import * as whole from 'svc/plugin'
import { createKernel, definePlugin as same } from 'svc'
import * as v from 'valibot'
const route = routeOf()
const issue = v.safeParse(v.object({ a: v.string() }), {}).issues[0]
export const names = Object.keys(whole)
export default definePlugin({ name: 'acme.old', version: '1.0.0' }).surface({
  hooks: { encode: () => [JSON.stringify], reply: () => [(_, reply) => reply] },
  routes: [route({
    method: 'GET', path: '/api/ext/acme.old/say', area: 'Test', summary: 'Say a text', errors: [410], runsCode: true,
    replies: { 200: v.object({ texts: v.array(v.string()) }) },
    cli: { path: 'acme old', view: { text: 'texts' } },
    handle: () => ok({ texts: [typeof backoff, typeof noteBytes, typeof TokenBucket, typeof createKernel,
      String(same === definePlugin), issueText(issue)] }),
  })],
})
`

test('an extension of apiVersion 1 has all its names of svc/plugin and svc', async () => {
  const svc = await scene({ 'acme.old': { 'extension.toml': manifest(1), 'main.js': MAIN } })
  try {
    const loaded = await svc.until('acme.old', isActive)
    assert.is(loaded.state, 'active')
    const { status, body } = await svc.request('GET', '/api/ext/acme.old/say')
    assert.is(status, 200)
    assert.equal(body.texts.slice(0, 5), ['function', 'function', 'function', 'function', 'true'])
    assert.is(body.texts[5], 'is required')
    // What the readers of routes had as members of its route is an annotation of each now.
    const { paths } = (await svc.request('GET', '/api/openapi.json')).body
    const operation = paths['/api/ext/acme.old/say'].get
    assert.equal(operation.tags, ['Test'])
    assert.ok(operation.responses['410'])
    const item = (await svc.request('GET', '/api/doctor')).body.items.find(
      ({ code }: { code: string }) => code === 'extension_api_old',
    )
    assert.match(item.message, /^acme\.old runs through the compatibility layer of apiVersion 1/)
  } finally {
    await svc.close()
  }
})

test('removed parts of apiVersion 1 are reported at load and at use', async () => {
  const main = `import { definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'
const route = routeOf()
export default definePlugin({ name: 'acme.old', version: '1.0.0', service: async () => class {
  constructor(kernel) { this.kernel = kernel }
  title() { return this.kernel.setting('acme.old.title') }
  publish() { return this.kernel.events.emit() }
} }).surface({
  routes: [route({ method: 'GET', path: '/api/ext/acme.old/say', summary: 'Say', replies: { 200: v.object({ a: v.string() }) },
    handle: self => { try { self.title() } catch (error) { return ok({ a: error.message }) } } })],
})
`
  const svc = await scene({ 'acme.old': { 'extension.toml': manifest(1), 'main.js': main } })
  try {
    await svc.until('acme.old', isActive)
    const { items } = (await svc.request('GET', '/api/doctor?only=extensions')).body
    const item = items.find(({ code }: { code: string }) => code === 'extension_api_gone')
    assert.match(
      item?.message,
      /main\.js:6 uses kernel\.setting, which is gone; write kernel\.config\.get\(TheSetting\)/,
    )
    assert.match(item?.message, /main\.js:7 uses kernel\.events/)
    const answer = (await svc.request('GET', '/api/ext/acme.old/say')).body.a
    assert.is(answer, 'kernel.setting is gone; write kernel.config.get(TheSetting)')
  } finally {
    await svc.close()
  }
})

test('all reasons that prevent a load are reported at once', async () => {
  const main = `import { defineErrors, definePlugin, event, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'
const route = routeOf()
const read = kernel => kernel.setting('x')
export default definePlugin({ name: 'acme.old', version: '1.0.0' }).surface({
  events: [event('noted', v.object({}))],
  errors: [defineErrors({ lost: { status: 404, message: 'lost' } })],
  routes: [route({ method: 'GET', path: '/api/other', summary: 'Say', replies: { 200: v.object({}) }, handle: () => ok({}) })],
})
`
  const svc = await scene({ 'acme.old': { 'extension.toml': manifest(1), 'main.js': main } })
  try {
    const { last_error } = await svc.until('acme.old', hasFailed)
    for (const part of [
      '4 faults',
      'the route /api/other',
      'the event noted',
      'the error code lost',
      'main.js:4 uses kernel.setting',
    ])
      assert.ok(last_error.includes(part), `${part} in ${last_error}`)
  } finally {
    await svc.close()
  }
})

test('route members of apiVersion 1 become annotations, beside existing ones', () => {
  const route = { method: 'POST', path: '/x', summary: 's', replies: {}, handle: () => undefined } as const
  assert.is(annotated(route), route, 'one without them stays what it is')
  const old: Pick<Route<never>, 'method' | 'with'> = annotated({
    ...route,
    area: 'A',
    errors: [410],
    runsCode: false,
    cli: { path: 'acme x', done: 'ok' },
  })
  assert.equal(Object.keys(old).sort(), ['handle', 'method', 'path', 'replies', 'summary', 'with'])
  assert.equal(annotationOf(old, Description), { area: 'A', errors: [410] })
  assert.equal(annotationOf(old, Cli), { path: 'acme x', done: 'ok' })
  assert.is(canRunCode(old), false)
})

/** What a copy of the extension finds under `svc/plugin`, in the built package and by Node's own resolution. */
async function namesInCopy(api: 1 | 2, prepare: (cache: string) => Promise<unknown> = async () => {}) {
  const home = await temporaryFolder('version')
  const [root, cache] = [path.join(home, 'acme.old'), path.join(home, 'cache')]
  try {
    await mkdir(root)
    await mkdir(cache)
    await prepare(cache)
    await writeFile(path.join(root, 'extension.toml'), manifest(api))
    const main =
      "import * as whole from 'svc/plugin'\nimport { Alarm } from 'svc/kit'\nimport { Host } from 'svc/plugin'\n"
    const print = 'console.log(JSON.stringify({ names: Object.keys(whole), one: whole.Host === Host && !!Alarm }))\n'
    await writeFile(path.join(root, 'main.js'), main + print)
    const { folder, hash } = await new CodeCache(cache).copy('acme.old', root, 'unique', api)
    assert.is(new CodeCache(cache).folderOf(hash, 'acme.old'), folder)
    const env = { PATH: process.env.PATH }
    const output = execFileSync(process.execPath, [path.join(folder, 'main.js')], { encoding: 'utf8', env })
    return {
      ...(JSON.parse(output) as { names: string[]; one: boolean }),
      about: await readFile(path.join(home, 'target.json'), 'utf8').catch(() => ''),
    }
  } finally {
    await rm(home, { recursive: true })
  }
}

test('version 1 in the built package has all its names, independent of version 2', async () => {
  const { names, one } = await namesInCopy(1)
  assert.equal(
    NAMES_OF_ONE.filter(name => !names.includes(name)),
    [],
  )
  assert.ok(one)
  const two = await namesInCopy(2)
  assert.ok(two.names.includes('definePlugin'))
})

test('the link of an earlier daemon for version 1 is replaced, and its package is not written to', async () => {
  const { names, about } = await namesInCopy(1, async cache => {
    const target = path.join(cache, '../target.json')
    await writeFile(target, 'untouched')
    const old = path.join(cache, 'old')
    await mkdir(path.join(cache, 'node_modules'))
    await mkdir(old)
    await symlink('../../target.json', path.join(old, 'package.json'))
    await symlink(old, path.join(cache, 'node_modules/svc'), 'dir')
  })
  assert.ok(names.includes('readNote'))
  assert.is(about, 'untouched')
})

test('an extension has the types of its apiVersion', async () => {
  const root = await temporaryFolder('types')
  const pathsFor = async (apiVersion: 1 | 2) => {
    await writeTypes(root, { apiVersion })
    const text = await readFile(path.join(root, '.svc/tsconfig.json'), 'utf8')
    return JSON.parse(text.slice(text.indexOf('\n'))).compilerOptions.paths as Record<string, string[]>
  }
  const [one, two] = [await pathsFor(1), await pathsFor(2)]
  assert.match(one['svc/plugin']?.[0] ?? '', /dist\/types\/plugins\/delivery\/extensions\/version-one\/plugin\.d\.ts$/)
  assert.match(one.svc?.[0] ?? '', /version-one\/svc\.d\.ts$/)
  assert.match(two['svc/plugin']?.[0] ?? '', /dist\/types\/kernel\/plugin\.d\.ts$/)
  assert.is(one['svc/kit']?.[0], two['svc/kit']?.[0])
  await rm(root, { recursive: true })
})

test.run()
