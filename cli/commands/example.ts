import type { Parameter } from './command-data.js'
import type { Entry } from './find-command.js'

/** Prefixes of ids by the word that stands before `id`, or by the group of the command. */
const idPrefixes: Readonly<Record<string, string>> = {
  session: 'ses',
  workspace: 'ws',
  job: 'job',
  jobs: 'job',
  trigger: 'trg',
  triggers: 'trg',
  run: 'run',
  runs: 'run',
  task: 'task',
}
const hex = '0123456789abcdef'
const byType: Readonly<Record<Parameter['type'], string>> = {
  text: 'text',
  file: '.',
  workspace: 'app',
  integer: '10',
  number: '1.5',
  boolean: '',
  list: 'one',
  json: `'{}'`,
}
/** Names whose values are of a known form. */
const byName: Readonly<Record<string, string>> = {
  agent: 'report',
  agent_name: 'report',
  kind: 'automation.job',
  shell: 'bash',
  every: '1h',
  since: '2030-01-31T09:00:00Z',
  text: `'Look at the tests'`,
  prompt: `'Look at the tests'`,
  schedule: `'{"mode":"every","interval":"1h"}'`,
  scope: 'global',
}

interface Wanted {
  readonly name: string
  readonly type: Parameter['type']
  readonly values?: readonly string[]
  readonly fallback?: string
}

/** A call of a command with everything that it needs and one thing that it may have, as one would type it. */
export function exampleOf(entry: Entry): string {
  const words = ['svc', entry.path]
  if (entry.kind !== 'route') {
    for (const { name, optional } of entry.args) if (!optional) words.push(sample(entry, { name, type: 'text' }))
    const [option] = entry.options
    if (option) words.push(...optionWords(option.name, sample(entry, option)))
    return words.join(' ')
  }
  const wanted = (parameter: Parameter): Wanted => ({
    name: parameter.name,
    type: parameter.type,
    ...(parameter.values && { values: parameter.values }),
    ...(parameter.default !== undefined && { fallback: parameter.default }),
  })
  for (const arg of entry.args) if (arg.required || arg.default !== undefined) words.push(sample(entry, wanted(arg)))
  const needed = entry.options.filter(({ required }) => required)
  const other = entry.options.find(({ required, type, values }) => !required && (values || type === 'integer'))
  for (const option of needed.length > 0 || !other ? needed : [other]) {
    const short = entry.shorthands?.find(({ member }) => option.in === 'body' && member === option.name)
    if (short) words.push(...optionWords(short.option, byName[short.option] ?? byType.text))
    else words.push(...optionWords(option.option, sample(entry, wanted(option))))
  }
  return words.join(' ')
}

const optionWords = (name: string, value: string) => (value === '' ? [`--${name}`] : [`--${name}`, value])

function sample(entry: Entry, { name, type, values, fallback }: Wanted): string {
  if (fallback !== undefined) return fallback
  if (values?.[0] !== undefined) return values[0]
  const known = byName[name]
  if (known !== undefined && (type === 'text' || type === 'json')) return known
  const groups = entry.path.split(' ').slice(0, -1)
  const word = /^(\w+?)[_-]?id$/.exec(name)?.[1] ?? (name === 'id' ? groups.at(-1) : undefined)
  if (word !== undefined) return idPrefixes[word] ? `${idPrefixes[word]}_${hex}` : 'nightly'
  if (name === 'name') return groups[0] === 'agent' ? 'report' : 'nightly'
  return byType[type]
}
