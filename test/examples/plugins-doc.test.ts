import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { kernelPoints } from '../../kernel/contract/kernel-hooks.js'
import * as kit from '../../kernel/kit/index.js'
import * as platform from '../../kernel/platform.js'
import * as plugin from '../../kernel/plugin.js'
import { pluginFolders } from '../../scripts/plugin-folders.mjs'

const root = path.join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
const document = read('docs/plugins.md')
/** Blocks of code, with the imports of the files that they quote, and code in the text. */
const quoted = [...document.matchAll(/^```(?:ts|js)\n(?:\/\/ (\S+)\n)?([\s\S]*?)^```$/gm)]
const files = [...new Set(quoted.flatMap(([, file]) => file ?? []))].filter(file => file.startsWith('examples/'))
const code = [document, ...files.map(read)].join('\n')

const sources = (readdirSync(path.join(root, 'kernel'), { recursive: true, encoding: 'utf8' }) as string[])
  .filter(file => file.endsWith('.ts'))
  .map(file => read(`kernel/${file}`))

/** Types of the members of an interface of the kernel, by member; a member whose type is a name is one of several. */
function membersOf(type: string): Map<string, string> {
  const opens = new RegExp(`(?:interface|class) ${type}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm')
  const extended = new RegExp(`interface ${type}\\b[^{]* extends (\\w+)`)
  const source = sources.find(text => opens.test(text)) ?? ''
  const [, body = ''] = opens.exec(source) ?? []
  const [, parent] = extended.exec(source) ?? []
  const own = [...body.matchAll(/^ {2}(?:readonly |async |get )*(\w+)\??(?:: |[<(])(.*)$/gm)]
  return new Map([
    ...(parent ? membersOf(parent) : []),
    ...own.map(([, name = '', rest = '']) => [name, rest] as const),
  ])
}

/** Members of a type that is what a function returns, or a record of names. */
function aliasMembers(type: string): ReadonlySet<string> {
  const alias = new RegExp(`^export type ${type} =([\\s\\S]*?)(?:^$|\\n\\n)`, 'm')
  const [, text = ''] = sources.map(source => alias.exec(source)).find(Boolean) ?? []
  const [, made] = /ReturnType<typeof (\w+)>/.exec(text) ?? []
  const returned = new RegExp(`^export function ${made}\\b[\\s\\S]*?^ {2}return \\{\\n([\\s\\S]*?)^ {2}\\}`, 'm')
  const [, body = ''] = (made && sources.map(source => returned.exec(source)).find(Boolean)) || []
  const names = [...body.matchAll(/^ {4}(?:async )?(\w+)[:(]/gm), ...text.matchAll(/'(\w+)'/g)]
  return new Set(names.map(([, name = '']) => name))
}

/** What is wrong with `kernel.a.b`, be it the kernel of a plugin or that of an embedder. */
function wrongMember(member: string, inner: string | undefined): string | undefined {
  const types = ['PluginKernel', 'Kernel'].flatMap(type => membersOf(type).get(member) ?? [])
  if (types.length === 0) return `kernel.${member}`
  // What a requirement leads to belongs to the plugin that provides it, and a variable to whoever sets it.
  if (inner === undefined || member === 'needs' || member === 'env') return undefined
  const names = types.flatMap(type => type.match(/[A-Z]\w+|'\w+'/g) ?? [])
  const found = names.some(name => name === `'${inner}'` || membersOf(name).has(inner) || aliasMembers(name).has(inner))
  return found ? undefined : `kernel.${member}.${inner}`
}

/** What is wrong with a module of the package, and the names that are imported from it. */
async function wrongModule(module: string, names: readonly string[] = []): Promise<string[]> {
  const [, , name = ''] = module.split('/')
  const entries = JSON.parse(read('package.json')).exports
  const key = `.${module.slice('svc'.length)}`
  const isPlugin = pluginFolders(root).some(one => one.name === name && one.files.includes('api.ts'))
  if (!(key in entries) && !isPlugin) return [module]
  const exported = names.length === 0 ? {} : await import(module)
  return names.filter(each => !(each in exported)).map(each => `${each} of ${module}`)
}

/** Imports of values in the code of the document, types aside. */
const imports = (text: string) =>
  [...text.matchAll(/^import \{([^}]+)\} from '(svc[\w/-]*)'/gm)].map(([, names = '', module = '']) => ({
    module,
    names: names.split(',').flatMap(each => (/^type /.test(each.trim()) ? [] : each.trim() || [])),
  }))

test('every module and import that the document names exists', async () => {
  const named = [...code.matchAll(/['"`](svc\/[\w/-]+)['"`]/g)].map(([, module = '']) => wrongModule(module))
  const imported = imports(code).map(({ module, names }) => wrongModule(module, names))
  assert.equal((await Promise.all([...named, ...imported])).flat(), [])
  assert.ok(named.length > 10 && imported.length > 10)
})

test('every token in the table of services is exported by the named module', async () => {
  const rows = [...document.matchAll(/^\| `(\w+)` \| `(svc\/plugins\/\w+)` \|/gm)]
  const wrong = await Promise.all(rows.map(([, name = '', module = '']) => wrongModule(module, [name])))
  assert.equal(wrong.flat(), [])
  assert.ok(rows.length > 3)
})

test('every member of the kernel that the document names exists', () => {
  const members = [...code.matchAll(/\bkernel\.(\w+)(?:\.(\w+))?/g)].filter(([text]) => !/^kernel\.(js|ts)/.test(text))
  const wrong = members.map(([, member = '', inner]) => wrongMember(member, inner)).filter(Boolean)
  assert.equal(wrong, [])
  assert.ok(members.length > 40)
})

test('every hook of the kernel has a row, and every row has a hook', () => {
  const [, section = ''] = /### Hooks of the kernel\n([\s\S]*?)\n##/.exec(document) ?? []
  const rows = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  assert.equal(rows.sort(), Object.keys(kernelPoints).sort())
})

test('every helper of the kit and every name of svc/plugin in the document exists', () => {
  const [, section = ''] = /## The kit\n([\s\S]*?)\n## /.exec(document) ?? []
  const helpers = [...section.matchAll(/\*\*`(\w+)/g)].map(([, name = '']) => name)
  const [, row = ''] = /^\| `svc\/plugin` \|(.*)\|$/m.exec(document) ?? []
  const names = [...row.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
  assert.equal([...helpers.filter(name => !(name in kit)), ...names.filter(name => !(name in plugin))], [])
  assert.ok(helpers.length > 10 && names.length > 5)
})

test('the first 300 lines of the document list every value of svc/plugin and every entry of a surface', () => {
  const first = document.split('\n').slice(0, 300).join('\n')
  const absent = Object.keys(plugin).filter(name => !new RegExp(`\`${name}\\b`).test(first))
  assert.equal(absent, [])
  const rows = [...first.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
  const entries = [...membersOf('Surface').keys()]
  assert.ok(entries.length > 15)
  assert.equal(
    entries.filter(entry => !rows.includes(entry)),
    [],
  )
})

test('the section of svc/platform lists every value of it', () => {
  const [, section = ''] = /\n## svc\/platform\n([\s\S]*?)\n## /.exec(document) ?? []
  const absent = Object.keys(platform).filter(name => !new RegExp(`\\b${name}\\b`).test(section))
  assert.equal(absent, [])
})

test('every link within the document resolves to a heading', () => {
  const headings = [...document.matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => text.toLowerCase())
  const anchors = new Set(headings.map(text => text.replace(/[^\w -]/g, '').replaceAll(' ', '-')))
  const links = [...document.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor)
  assert.equal(
    links.filter(anchor => !anchors.has(anchor)),
    [],
  )
})

test('a missing name is found', async () => {
  assert.is(wrongMember('spawn', undefined), 'kernel.spawn')
  assert.is(wrongMember('config', 'setting'), 'kernel.config.setting')
  assert.equal(await wrongModule('svc/nothing'), ['svc/nothing'])
  assert.equal(await wrongModule('svc/kit', ['LeaseTable', 'Nothing']), ['Nothing of svc/kit'])
})

test.run()
