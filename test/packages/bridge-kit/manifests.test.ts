import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'smol-toml'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BridgeInstanceKind } from '../../../plugins/reach/bridges/bridge-kind.js'

const folder = fileURLToPath(new URL('../../../packages', import.meta.url))
const adapters = readdirSync(folder).filter(name => name.startsWith('bridge-') && name !== 'bridge-kit')
const read = (name: string, file: string) => readFileSync(`${folder}/${name}/${file}`, 'utf8')

interface Property {
  readonly type: string
  readonly pattern?: string
  readonly default?: unknown
}
interface Schema {
  readonly properties: Readonly<Record<string, Property>>
  readonly required?: readonly string[]
}
const schemaOf = (name: string) => JSON.parse(read(name, 'config.schema.json')) as Schema

test('no adapter setting is recognized as a secret', () => {
  assert.ok(adapters.length > 5)
  for (const name of adapters) {
    const texts = Object.entries(schemaOf(name).properties).filter(([, { type }]) => type === 'string')
    const provider_config = Object.fromEntries(texts.map(([key]) => [key, 'x']))
    const routing_policy = { include_peer: true, include_group: false, include_thread: false }
    const spec = { extension_name: name, status: 'disabled', enabled: false, routing_policy, provider_config }
    const record = { id: 'bri_1', scope: { kind: 'global' }, spec } as unknown as Parameters<
      NonNullable<typeof BridgeInstanceKind.check>
    >[0]
    assert.is(BridgeInstanceKind.check?.(record), undefined, name)
  }
})

test('manifest, package and program have one name and version; defaults are valid', () => {
  for (const name of adapters) {
    const { name: named, version } = parse(read(name, 'extension.toml'))
    assert.ok(read(name, 'src/manifest.ts').includes(`{ name: '${name}', version: '${version}' }`), name)
    assert.is(named, name)
    assert.is(JSON.parse(read(name, 'package.json')).version, version, name)
    const { properties, required = [] } = schemaOf(name)
    for (const [key, { pattern, default: usual }] of Object.entries(properties))
      if (pattern !== undefined && typeof usual === 'string') assert.match(usual, new RegExp(pattern), `${name} ${key}`)
    for (const key of required) assert.ok(key in properties, `${name} ${key}`)
  }
})

test.run()
