import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandData } from '../../cli/commands/command-data.js'
import { type Entry, findCommand } from '../../cli/commands/find-command.js'
import { localCommands } from '../../cli/local.js'
import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ProviderUsers } from '../../plugins/agents/providers/api.js'
import { catalog } from '../../plugins/agents/providers/catalog.js'
import { inTree } from '../../plugins/index.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { invocationOf } from './invocation-of.js'
import { commandsIn, suggestions } from './suggestions.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..')
const data: CommandData = JSON.parse(readFileSync(path.join(root, 'dist/commands.json'), 'utf8'))
const entries: readonly Entry[] = [...localCommands, ...data.routes, ...data.commands]

/** What the command line itself says of a command; undefined when it takes it. */
async function refusal(command: string): Promise<string | undefined> {
  // What a shell redirects is no argument, and a number was filled in as the letter of every placeholder.
  const plain = command.replace(/ < \S+$/, '').replace(/(--expected-version) x\b/, '$1 1')
  const words = plain.match(/"[^"]*"|'[^']*'|\S+/g)?.map(word => word.replace(/^["']|["']$/g, '')) ?? []
  const found = findCommand(words.slice(1), entries)
  if (found.is !== 'command') return `${command}: no such command`
  if (found.rest.includes('--help')) return undefined
  try {
    await invocationOf(found.entry, found.rest)
    return undefined
  } catch (error) {
    return `${command}: ${(error as Error).message}`
  }
}

test('every command suggested by a text of the daemon or the command line is parsed', async () => {
  const wrong: string[] = []
  let seen = 0
  const groups = new Set(entries.map(entry => entry.path.split(' ')[0]))
  for (const { file, whole, mentioned } of suggestions()) {
    seen += whole.length
    for (const command of whole) {
      const why = await refusal(command)
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

test('an unknown command is found by the check', async () => {
  assert.match((await refusal('svc agents lst')) ?? '', 'no such command')
  assert.match((await refusal('svc agent info')) ?? '', 'svc agent info')
  assert.match((await refusal('svc agent list --nonsense 1')) ?? '', 'nonsense')
  assert.equal(commandsIn(`x({ next: \`svc agent info \${name}\`, y: 'see svc doctor' })\n// 'svc nothing'`), {
    whole: ['svc agent info x'],
    mentioned: ['svc doctor'],
  })
})

test('doctor suggests existing commands, catalog installs and chmod for a broken home', async () => {
  const home = await temporaryFolder('suggest')
  await writeFile(
    path.join(home, 'config.json'),
    '{ "plugins": { "vendor.x": { "key": "x" } }, "defaults": { "provider": "nobody" } }',
  )
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
    if (command.startsWith('svc ')) assert.is(await refusal(command), undefined)
    else if (!command.startsWith('chmod ')) assert.ok(installs.includes(command), command)
  }
  for (const install of installs) assert.ok(suggested.includes(install), install)
  assert.ok(suggested.filter(command => command.startsWith('svc ')).length >= 4, suggested.join('\n'))
  const troubled = items.filter((item: { severity: string }) => item.severity !== 'info')
  for (const item of troubled) assert.match(item.code, /^[a-z]+(_[a-z]+)*$/)
  await host.close()
})

test('every command in README, docs and CONTRIBUTING is parsed', async () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...readdirSync(path.join(root, 'docs')).map(name => `docs/${name}`)]
  const found = pages
    .filter(name => name.endsWith('.md') && !/decisions|architecture/.test(name))
    .flatMap(name => {
      const blocks = readFileSync(path.join(root, name), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```/gm)
      return [...blocks].flatMap(([, block = '']) =>
        block
          .replace(/\\\n/g, ' ')
          .split('\n')
          .map(line => line.replace(/\s+#.*$/, ''))
          .flatMap(line => line.split(/ && | \| /))
          .map(command => command.trim().replace(/^(?:\w+=\S+ )+/, ''))
          .filter(command => /^svc /.test(command) && !/^svc acme/.test(command))
          .map(command => ({ name, command })),
      )
    })
  assert.ok(found.length > 40, `${found.length}`)
  const wrong: string[] = []
  for (const { name, command } of found) {
    const why = await refusal(command)
    if (why !== undefined) wrong.push(`${name}: ${why}`)
  }
  assert.equal(wrong, [])
})

test.run()
