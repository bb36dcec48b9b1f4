import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse as parseToml } from 'smol-toml'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { addSetting, configSchema, settingSchema } from '../../cli/schema/config-schema.js'
import { bundleSchema, extensionSchema } from '../../cli/schema/manifest-schemas.js'
import { configChecker } from '../../cli/setup/check-config.js'
import { KernelSettings } from '../../kernel/platform.js'
import type { Setting } from '../../kernel/plugin.js'
import { parseBundle } from '../../plugins/delivery/bundles/manifest.js'
import { parseManifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { inTree } from '../../plugins/index.js'
import { label } from '../fixtures/cases.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = join(root, 'dist/bin/svc')
const settings = [
  ...Object.values(KernelSettings),
  ...inTree.flatMap(({ surface }) => surface.settings ?? []),
] as Setting[]

/** A validator that is not ours. Unknown keywords of a schema are a mistake of ours. */
const judgeOf = (schema: object) => {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowMatchingProperties: true,
    allErrors: true,
  })
  for (const format of ['uri', 'email', 'date-time', 'ipv4', 'ipv6']) ajv.addFormat(format, true)
  const validate = ajv.compile(schema)
  return (value: unknown) => (validate(value) ? '' : ajv.errorsText(validate.errors))
}

const judge = judgeOf(configSchema(settings.map(settingSchema), '1.2.3'))
const problemsOf = configChecker('config.json')

/** `a.b` as `{ a: { b } }`. */
const nested = (path: string, value: unknown) =>
  path.split('.').reduceRight<unknown>((below, key) => ({ [key]: below }), value)

test('the default of every setting matches the schema', () => {
  const written = settings.filter(({ schema, default: fallback }) => v.safeParse(schema, fallback).success)
  assert.ok(written.length > settings.length / 2)
  for (const { path, default: fallback } of written)
    if (fallback !== undefined) assert.is(judge(nested(path, fallback)), '', path)
})

for (const config of [
  '{}',
  '{ "$schema": "./config.schema.json", "http": { "port": 0, "enabled": "auto", "allowed_hosts": ["box:2123"] } }',
  '{ "log": { "level": "debug" }, "permissions": { "mode": "approve-reads" }, "daemon": { "socket": "/run/x" } }',
  '{ "plugins": { "disabled": ["window-manager"], "replace": ["acme.tasks"], "acme.hello": { "a": 1 }, "acme": { "x": { "b": 2 } } } }',
  '{ "providers": { "svc": { "base_url": "http://localhost:11434/v1" } }, "defaults": { "provider": "svc" } }',
  '{ "daemon": { "service": { "stop_wait_seconds": 60 } } }',
])
  test(`a configuration is accepted by daemon and schema: ${label(config)}`, async () => {
    assert.equal((await problemsOf)(config), [])
    assert.is(judge(JSON.parse(config)), '')
  })

for (const config of [
  '[]',
  '{ "nothing": 1 }',
  '{ "http": { "prot": 1 } }',
  '{ "http": { "port": "2123" } }',
  '{ "http": { "port": 65536 } }',
  '{ "http": 1 }',
  '{ "http": { "allowed_hosts": ["no host"] } }',
  '{ "log": { "level": "loud" } }',
  '{ "log": { "max_size_mb": 1.5 } }',
  '{ "plugins": { "acme": 1 } }',
  '{ "permissions": { "mode": "all" } }',
  '{ "daemon": { "service": { "stop_wait_seconds": -1 } } }',
])
  test(`a configuration is refused by daemon and schema: ${config}`, async () => {
    assert.ok((await problemsOf)(config).length > 0)
    assert.is.not(judge(JSON.parse(config)), '')
  })

test('only settings of loaded extensions are part of the schema', () => {
  const schema = configSchema(settings.map(settingSchema), '1.2.3')
  const setting = {
    path: 'plugins.acme.hello.greeting',
    section: 'acme',
    schema: v.picklist(['hi', 'ho']),
    default: 'hi',
    apply: 'live',
  }
  addSetting(schema, settingSchema(setting as Setting))
  const judgeMore = judgeOf(schema)
  assert.is(judgeMore({ plugins: { acme: { hello: { greeting: 'ho' }, other: { x: 1 } }, disabled: [] } }), '')
  assert.match(judgeMore({ plugins: { acme: { hello: { greeting: 'bye' } } } }), 'greeting')
  assert.match(judgeMore({ plugins: { acme: { hello: { loud: true } } } }), 'additional')
})

/** Manifests of the repository. */
const manifests = ['packages', 'examples/extensions'].flatMap(folder =>
  readdirSync(join(root, folder)).flatMap(name => {
    const file = join(root, folder, name, 'extension.toml')
    return existsSync(file) ? [file] : []
  }),
)

test('every manifest of the repository matches the extension schema, and broken ones do not', () => {
  const judgeManifest = judgeOf(extensionSchema('1.2.3'))
  assert.ok(manifests.length > 20)
  for (const file of manifests) {
    const text = readFileSync(file, 'utf8')
    assert.is(judgeManifest(parseToml(text)), '', file)
    assert.is(judgeManifest({ $schema: 'x', ...parseToml(text) }), '', file)
    assert.ok(parseManifest(`"$schema" = "https://example.com/s.json"\n${text}`, 'extension.toml').name)
  }
  const base = { name: 'acme.a', version: '1.0.0' }
  assert.is(judgeManifest({ extension: base }), '')
  assert.is(judgeManifest({ extension: { version: '1.0.0' }, name: 'acme.a' }), '')
  const broken: unknown[] = [
    {},
    { name: 'acme.a' },
    { extension: { name: 'acme.a' } },
    { ...base, name: 'Not A Name' },
    { ...base, nothing: 1 },
    { extension: { ...base, tools: [] } },
    { ...base, resources: { skills: 'skills' } },
    { ...base, capabilities: { provides: ['nothing'] } },
  ]
  for (const value of broken) {
    assert.throws(() => parseManifest(JSON.stringify(value), 'extension.json'), undefined, JSON.stringify(value))
    assert.is.not(judgeManifest(value), '', JSON.stringify(value))
  }
  assert.throws(() => parseManifest(JSON.stringify({ ...base, $schema: 1 }), 'extension.json'), /\$schema/)
})

test('a bundle matches the bundle schema, and broken bundles do not', () => {
  const judgeBundle = judgeOf(bundleSchema('1.2.3'))
  const isRead = (value: unknown) => 'manifest' in parseBundle('a.json', JSON.stringify(value))
  const profile = {
    name: 'default',
    jobs: [{ name: 'nightly', agent: 'report', prompt: 'p', schedule: { mode: 'every', interval: '1d' } }],
  }
  const good: unknown[] = [
    { $schema: './bundle.schema.json', name: 'a', profiles: [profile] },
    { bundle: { name: 'a', version: '1' }, profiles: [profile] },
    { bundle: { name: 'a', profiles: [profile] } },
  ]
  for (const value of good) {
    assert.ok(isRead(value), JSON.stringify(value))
    assert.is(judgeBundle(value), '', JSON.stringify(value))
  }
  for (const value of [
    {},
    { name: 'a' },
    { name: 'a', profiles: [] },
    { name: 'a', profiles: [{ ...profile, x: 1 }] },
  ]) {
    assert.not.ok(isRead(value), JSON.stringify(value))
    assert.is.not(judgeBundle(value), '', JSON.stringify(value))
  }
})

test('svc init writes the schema and names it in config.json; config schema prints it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-schema-'))
  try {
    const env = { HOME: home, SVC_HOME: join(home, '.svc'), PATH: '/nowhere' }
    const svc = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env })
    assert.is(svc('init', '--yes').status, 0)
    const config = readFileSync(join(home, '.svc/config.json'), 'utf8')
    assert.is(JSON.parse(config).$schema, './config.schema.json')
    assert.equal((await problemsOf)(config), [])
    const written = readFileSync(join(home, '.svc/config.schema.json'), 'utf8')
    assert.is(svc('config', 'schema').stdout, written)
    assert.is(judgeOf(JSON.parse(written))(JSON.parse(config)), '')
    const cached = [
      settingSchema({
        path: 'plugins.acme.x.y',
        section: '',
        schema: v.boolean(),
        default: true,
        apply: 'live',
      } as Setting),
    ]
    mkdirSync(join(home, '.svc/cache'), { recursive: true })
    writeFileSync(
      join(home, '.svc/cache/settings.json'),
      JSON.stringify([...cached, { path: 'http.port', schema: {} }, 7]),
    )
    assert.is(svc('config', 'schema', '--write').status, 0)
    const judgeWritten = judgeOf(JSON.parse(readFileSync(join(home, '.svc/config.schema.json'), 'utf8')))
    assert.is(judgeWritten({ plugins: { acme: { x: { y: false } } } }), '')
    assert.match(judgeWritten({ plugins: { acme: { x: { y: 1 } } }, http: { port: 'x' } }), /y must be boolean.*port/)
    for (const name of ['extension', 'bundle']) judgeOf(JSON.parse(svc(name, 'schema').stdout))
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test.run()
