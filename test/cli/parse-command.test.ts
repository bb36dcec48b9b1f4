import { tmpdir } from 'node:os'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type OptionData, ownOptionsOf } from '../../cli/commands/command-options.js'
import type { Entry } from '../../cli/commands/find-command.js'
import { Dice, forSeeds } from '../kernel/fixtures/dice.js'
import { runCli } from './fake-daemon.js'
import { invocationOf } from './invocation-of.js'
import { data, dist, entries } from './tree.js'

const texts = ['', '-', '-3', '--', '-x', '--quiet', '--no-json', 'a b', 'x=y', '=', 'line\nline', 'é', '\u0001', '{}']
const examples: Readonly<Record<string, readonly string[]>> = {
  integer: ['0', '17', '-3'],
  number: ['1.5', '-2'],
  boolean: ['true', 'false'],
  json: ['{"a":"-b"}', '[]', '-1'],
}

/** A text that a value may be: of its allowed ones, of its type, or one that a parser could take for something else. */
const anyValue = (dice: Dice, { type, values }: Pick<OptionData, 'type' | 'values'>) =>
  dice.of(values ?? examples[type] ?? texts)

const isOptionLike = (text: string) => text === '--' || /^--?[a-z]/i.test(text)

/** One call of a command with all of its arguments and some of its options, and what has to arrive. */
function call(entry: Entry, dice: Dice) {
  const words: string[] = []
  const options: Record<string, string | boolean | string[]> = {}
  for (const option of ownOptionsOf(entry).filter(() => dice.chance(0.6))) {
    if (option.type === 'boolean') {
      const isOn = option.name.startsWith('no-') || dice.chance(0.5)
      words.push(isOn ? `--${option.name}` : `--no-${option.name}`)
      options[option.name] = isOn
      continue
    }
    const values = option.type === 'list' ? [anyValue(dice, option), anyValue(dice, option)] : [anyValue(dice, option)]
    for (const value of values) {
      const other = option.alias && option.alias.length > 1 && dice.chance(0.5) ? option.alias : option.name
      words.push(...(isOptionLike(value) || dice.chance(0.5) ? [`--${other}=${value}`] : [`--${other}`, value]))
    }
    options[option.name] = option.type === 'list' ? values : (values[0] as string)
  }
  const args = entry.args.map(arg => {
    const { type = 'text', values } = arg as { type?: string; values?: readonly string[] }
    return [
      arg.name,
      entry.kind === 'route' ? anyValue(dice, { type, ...(values && { values }) }) : dice.of(texts),
    ] as const
  })
  const given = args.map(([, value]) => value)
  if (given.some(isOptionLike)) words.push('--')
  return { words: [...words, ...given], given: { args: Object.fromEntries(args), options } }
}

test('every argument and option of every command is parsed as given', async () => {
  await forSeeds(4, async seed => {
    const dice = new Dice(seed)
    for (const entry of entries) {
      const { words, given } = call(entry, dice)
      const { args, options } = await invocationOf(entry, words)
      assert.equal({ args, options }, given, `svc ${entry.path} ${JSON.stringify(words)}`)
    }
  })
})

const entry = (option: object): Entry =>
  ({ kind: 'module', path: 'thing make', summary: 'Make it', args: [], options: [option], module: '' }) as never

test('options with special names have values, and the last of several values counts', async () => {
  for (const name of ['sha256', 'Upper', 'a_b', 'constructor', 'paths', 'execute'])
    for (const words of [[`--${name}=-1`], [`--${name}`, '0', `--${name}`, '-1']])
      assert.equal(
        (await invocationOf(entry({ name, type: 'text' }), words)).options,
        { [name]: '-1' },
        words.join(' '),
      )
})

test('a refused word is named before the command runs', async () => {
  const refusal = (option: object, ...words: string[]) =>
    invocationOf(entry(option), words).then(
      () => '',
      (error: Error) => error.message,
    )
  const name = { name: 'name', type: 'text' }
  assert.is(await refusal(name, '--nmae', 'x'), 'unknown option --nmae; did you mean --name?')
  assert.is(await refusal(name, '-ojson'), 'unknown option -ojson')
  assert.is(await refusal(name, '--name'), '--name needs a value')
  assert.is(await refusal(name, '--name', '--quiet'), '--name needs a value')
  assert.is(await refusal(name, '--no-name'), 'unknown option --no-name')
  assert.is(await refusal({ name: 'no-wait', type: 'boolean' }, '--no-no-wait'), 'unknown option --no-no-wait')
  assert.is(await refusal({ name: 'wait', type: 'boolean' }, '--wait=true'), '--wait takes no value')
  assert.is(await refusal(name, 'x'), 'unexpected argument "x"')
  assert.is(await refusal({ name: 'size', type: 'integer' }, '--size', 'x'), '--size takes an integer, not "x"')
})

test('the definitions have every command with its options', async () => {
  const { code, stdout, stderr } = await runCli(tmpdir(), ['--clipanion=definitions'], { data, root: dist })
  assert.equal([code, stderr], [0, ''])
  const definitions: { path: string; description: string; options: { definition: string }[] }[] = JSON.parse(stdout)
  assert.equal(
    definitions.map(({ path }) => path),
    entries.map(({ path }) => `svc ${path}`),
  )
  for (const [at, one] of entries.entries()) {
    assert.is(definitions[at]?.description.trim(), one.summary)
    const text = definitions[at]?.options.map(({ definition }) => definition).join('\n') ?? ''
    for (const { name } of ownOptionsOf(one)) assert.match(text, `--${name}`, one.path)
  }
})

test.run()
