import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { exampleOf } from '../../cli/commands/example.js'
import { findCommand } from '../../cli/commands/find-command.js'
import { runCli } from './fake-daemon.js'
import { invocationOf } from './invocation-of.js'
import { data, dist, entries, wordsOf } from './tree.js'

const svc = (...argv: string[]) => runCli(tmpdir(), argv, { data, root: dist })

test('every command has help with usage, arguments, options and an example', async () => {
  assert.ok(entries.length > 40)
  for (const entry of entries) {
    const { code, stdout, stderr } = await svc(...entry.path.split(' '), '--help')
    assert.equal([code, stderr], [0, ''], entry.path)
    assert.equal((await svc('help', ...entry.path.split(' '))).stdout, stdout)
    assert.match(stdout, `  svc ${entry.path} `)
    assert.match(stdout, `\nExample\n  svc ${entry.path}`)
    for (const arg of entry.args) assert.match(stdout, new RegExp(`[<[]${arg.name}[>\\]]`), `${entry.path} ${arg.name}`)
    for (const option of entry.options) {
      const name = 'option' in option ? option.option : option.name
      assert.match(stdout, new RegExp(`^  --${name}( <.+>)?( |$)`, 'm'), `${entry.path} --${name}`)
    }
    assert.match(entry.summary, /^[A-Z].{3,}[^.]$/, entry.path)
  }
})

test('no option is listed twice', async () => {
  for (const { path } of entries) {
    const { stdout } = await svc(...path.split(' '), '--help')
    const names = stdout.match(/^ {2}(?:-\w, )?--[\w-]+/gm) ?? []
    assert.equal(names, [...new Set(names)], path)
  }
})

test('no example has a word in place of a value', () => {
  const fillers = entries
    .map(exampleOf)
    .filter(example => wordsOf(example).some(word => /^(?:text|one|\{\})$/.test(word)))
  assert.equal(fillers, [])
})

test('the example of a bridge names an extension of this repository', () => {
  const create = entries.find(({ path }) => path === 'bridge create')
  const [, extension = ''] = /--extension (\S+)/.exec(create ? exampleOf(create) : '') ?? []
  assert.ok(existsSync(new URL(`../../packages/${extension}/package.json`, import.meta.url)), extension)
})

test('every example is accepted by the parser of its command', async () => {
  for (const entry of entries) {
    const found = findCommand(wordsOf(exampleOf(entry)).slice(1), entries)
    assert.is(found.is === 'command' ? found.entry.path : found.is, entry.path)
    if (found.is === 'command') await invocationOf(found.entry, found.rest)
  }
})

test('a group lists its verbs: help on standard output, a missing verb on standard error with exit code 2', async () => {
  const groups = new Set(entries.flatMap(({ path }) => (path.includes(' ') ? [path.split(' ')[0] as string] : [])))
  for (const group of groups) {
    if (entries.some(({ path }) => path === group)) continue
    const help = await svc(group, '--help')
    const bare = await svc(group)
    assert.equal([help.code, bare.code, bare.stdout, bare.stderr], [0, 2, '', help.stdout], group)
    for (const { path } of entries) if (path.startsWith(`${group} `)) assert.match(help.stdout, `  ${path}`)
    const typo = await svc(group, 'zzzzzz')
    assert.is(typo.code, 2)
    assert.match(typo.stderr, `there is no command "${group} zzzzzz"`)
  }
})

test('help of a nested group lists its verbs; the nested group alone runs its list', async () => {
  const help = await svc('task', 'run', '--help')
  for (const { path } of entries) if (path.startsWith('task run ')) assert.match(help.stdout, `  ${path}`)
  const found = findCommand(['task', 'run', 'task_1'], entries)
  assert.is(found.is, 'unknown', 'a verb is looked for')
  const bare = findCommand(['automation', 'jobs'], entries)
  assert.is(bare.is === 'command' && bare.entry.path, 'automation jobs list')
})

test('help fits the narrowest terminal with names of any length', async () => {
  const groups = new Set(entries.map(({ path }) => path.split(' ')[0] as string))
  const texts = [['help'], ...[...groups, ...entries.map(({ path }) => path)].map(path => ['help', ...path.split(' ')])]
  for (const width of [40, 60, 80]) {
    const env = { COLUMNS: String(width) }
    for (const argv of texts) {
      const { stdout } = await runCli(tmpdir(), argv, { data, root: dist, env })
      // What is copied is not broken.
      const [text = ''] = stdout.split('\nExample\n')
      for (const line of text.split('\n')) assert.ok(line.length <= width, `${argv.join(' ')}, ${width}: ${line}`)
    }
    const words = (text: string) => text.split(/\s+/)
    const help = await runCli(tmpdir(), ['help'], { data, root: dist, env })
    assert.equal(words(help.stdout), words((await svc('help')).stdout))
  }
})

test('every group of the build is in a section of the help', async () => {
  assert.not.match((await svc('help')).stdout, 'Extension commands')
})

test('an option with many values names the command that lists them', async () => {
  const { stdout } = await svc('hooks', 'runs', '--help')
  assert.match(stdout.replace(/\s+/g, ' '), '--event <text> filter by event; see svc hooks events')
  assert.not.match(stdout, 'session.pre_create|')
})

test('a nested group without a verb runs its list', async () => {
  for (const path of ['automation jobs', 'automation runs']) {
    const { code, stderr } = await svc(...path.split(' '))
    assert.is(code, 3, stderr)
    assert.is(
      entries.some(entry => entry.path === `${path} list`),
      true,
    )
    const help = await svc(...path.split(' '), '--help')
    assert.is(help.code, 0)
    for (const entry of entries) if (entry.path.startsWith(`${path} `)) assert.match(help.stdout, `  ${entry.path}`)
    assert.match(help.stdout.replace(/\s+/g, ' '), `svc ${path} is svc ${path} list.`)
    const typo = await svc(...path.split(' '), 'zzzzzz')
    assert.match(typo.stderr, `svc ${path} --help`)
  }
})

test('a mistyped name of any command gets that command as suggestion', async () => {
  for (const { path } of entries) {
    const words = path.split(' ')
    const last = words.at(-1) as string
    const typo = `${last.slice(0, 1)}${last[2] ?? ''}${last[1]}${last.slice(3)}`
    if (last.length < 4 || last[1] === last[2]) continue
    const { code, stderr } = await svc(...words.slice(0, -1), typo)
    assert.is(code, 2)
    assert.match(stderr, `svc ${path}`, typo)
  }
})

test.run()
