import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandData } from '../../cli/commands/command-data.js'
import { type Entry, findCommand } from '../../cli/commands/find-command.js'
import { parseCommand } from '../../cli/commands/parse-command.js'
import { localCommands } from '../../cli/local.js'
import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { ProviderUsers } from '../../plugins/providers/api.js'
import { catalog } from '../../plugins/providers/catalog.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { sourcesBelow } from '../harness/source.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..')
const data: CommandData = JSON.parse(readFileSync(path.join(root, 'dist/commands.json'), 'utf8'))
const entries: readonly Entry[] = [...localCommands, ...data.routes, ...data.commands]

/** What the command line itself says of a command; undefined when it takes it. */
function refusal(command: string): string | undefined {
  const words = command.match(/"[^"]*"|'[^']*'|\S+/g)?.map(word => word.replace(/^["']|["']$/g, '')) ?? []
  const found = findCommand(words.slice(1), entries)
  if (found.is !== 'command') return `${command}: no such command`
  try {
    parseCommand(found.entry, found.rest)
    return undefined
  } catch (error) {
    return `${command}: ${(error as Error).message}`
  }
}

/** Literals of a source that are nothing but a command, placeholders filled in; and mentions of one in other texts. */
function commandsIn(text: string): { whole: string[]; mentioned: string[] } {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
  const filled = code.replace(/(\w?)\$\{[^{}]*\}/g, (_, before: string) => before || 'x')
  const literals = [...filled.matchAll(/`([^`]*)`|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)].map(
    ([, template, single, double]) => template ?? single ?? double ?? '',
  )
  const naming = literals.filter(literal => /(^|[\s:(])svc [a-z]/.test(literal))
  // `svc ${path}` is any command, and help is the command line's own.
  const whole = naming.filter(literal => /^svc (?!x\b|help\b)/.test(literal))
  const others = naming.filter(literal => !literal.startsWith('svc '))
  return {
    whole: whole.flatMap(literal => literal.split(' && ')),
    mentioned: others.flatMap(literal => literal.match(/(?<=^|[\s:(])svc [a-z]+/g) ?? []),
  }
}

test('every command that a text of the daemon or the command line suggests is taken by the command line', () => {
  const wrong: string[] = []
  let seen = 0
  const groups = new Set(entries.map(entry => entry.path.split(' ')[0]))
  for (const { file, text } of ['kernel', 'plugins', 'cli'].flatMap(folder => sourcesBelow(root, folder))) {
    // Scripts for shells.
    if (file === 'cli/commands/completion.ts') continue
    const { whole, mentioned } = commandsIn(text)
    seen += whole.length
    for (const command of whole) {
      const why = refusal(command)
      if (why !== undefined) wrong.push(`${file}: ${why}`)
    }
    for (const command of mentioned) {
      const [, group = ''] = command.split(' ')
      if (!groups.has(group) && !['help', 'as', 'x'].includes(group)) wrong.push(`${file}: ${command}: no such command`)
    }
  }
  assert.ok(seen > 30, `only ${seen} commands were found`)
  assert.equal(wrong, [])
})

test('a command that is not there is seen', () => {
  assert.match(refusal('svc agents lst') ?? '', 'no such command')
  assert.match(refusal('svc agent info') ?? '', 'svc agent info')
  assert.match(refusal('svc agent list --nonsense 1') ?? '', 'nonsense')
  assert.equal(commandsIn(`x({ next: \`svc agent info \${name}\`, y: 'see svc doctor' })\n// 'svc nothing'`), {
    whole: ['svc agent info x'],
    mentioned: ['svc doctor'],
  })
})

test('what doctor suggests on a home in a bad state: commands of ours that exist, installs of the catalog, chmod', async () => {
  const home = await temporaryFolder('suggest')
  await writeFile(path.join(home, 'config.json'), '{ "vendor": { "key": "x" }, "defaults": { "provider": "nobody" } }')
  await mkdir(path.join(home, 'agents', 'broken'), { recursive: true })
  await writeFile(path.join(home, 'agents', 'broken', 'AGENT.md'), 'x')
  await mkdir(path.join(home, 'agents', 'odd name;x'), { recursive: true })
  await writeFile(path.join(home, 'agents', 'odd name;x', 'AGENT.md'), 'x')
  const { contribute } = surfaceOf<object>()
  const users = definePlugin({ name: 'users', version: '1.0.0', service: async () => class {} }).surface({
    registries: [
      contribute(ProviderUsers, () =>
        catalog.map(({ name }) => ({ read: async () => [{ provider: name, by: `of-${name}` }] })),
      ),
    ],
  })
  const host = await boot({ home, plugins: [...inTree, users], env: { PATH: '/nowhere', SVC_HOME: home } })
  await host.request('PUT', '/api/resources/vendor.thing/a', {
    scope: { kind: 'global' },
    spec: {},
    expected_version: 0,
  })
  await host.request('POST', '/api/drain')
  await writeFile(path.join(home, 'config.json'), '{}')
  const { items } = (await host.request('GET', '/api/doctor')).body
  const installs = catalog.flatMap(({ install }) => (install ? [install] : []))
  const suggested: string[] = items.flatMap((item: { suggested_command?: string }) => item.suggested_command ?? [])
  for (const command of suggested.flatMap(text => text.split(' && '))) {
    if (command.startsWith('svc ')) assert.is(refusal(command), undefined)
    else if (!command.startsWith('chmod ')) assert.ok(installs.includes(command), command)
  }
  for (const install of installs) assert.ok(suggested.includes(install), install)
  assert.ok(suggested.filter(command => command.startsWith('svc ')).length >= 4, suggested.join('\n'))
  const troubled = items.filter((item: { severity: string }) => item.severity !== 'info')
  for (const item of troubled) assert.match(item.code, /^[a-z]+(_[a-z]+)*$/)
  await host.close()
})

test.run()
