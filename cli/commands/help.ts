import { KEYS, SLASH } from '../../plugins/work/session-commands/keys.js'
import { outputModes } from '../show/output.js'
import { padText, textWidth, wrapText } from '../show/text.js'
import { type CommandData, isWatchable } from './command-data.js'
import { GLOBAL, planningOf } from './command-options.js'
import { exampleOf } from './example.js'
import type { Entry } from './find-command.js'
import { shorthandsFor } from './shorthands.js'

type Row = readonly [left: string, right: string]

/** `svc session events <session_id> [--follow] …`, the call in one line. */
export function usageLine(entry: Entry): string {
  const args = argumentsOf(entry).map(({ name, required }) => (required ? `<${name}>` : `[${name}]`))
  const needed = optionRows(entry).filter(({ required }) => required)
  return ['svc', entry.path, ...args, ...needed.map(({ left }) => left), '[options]'].join(' ')
}

/** Help lines of one command, wrapped to a width. */
export function commandHelp(entry: Entry, width: number): string[] {
  const args = argumentsOf(entry).map(
    ({ name, summary, note }): Row => [name, [summary, note].filter(Boolean).join(' ')],
  )
  const options = optionRows(entry).map(
    ({ left, right, required }): Row => [left, required ? `${right} (required)`.trim() : right],
  )
  const [usage = '', ...more] = wrapText(usageLine(entry), width - 2 * indent)
  return [
    ...wrapText(entry.summary, width),
    '',
    ...[usage, ...more.map(line => `  ${line}`)].map(line => `  ${line}`),
    ...section('Arguments', args, width),
    ...section(
      'Options',
      [
        ...options,
        [`-o, --output <${outputModes.join('|')}>`, 'output format; --json is short for -o json'],
        ...without(options, [['--quiet', 'print only ids'], ...planningRows(entry)]),
        ['--help', 'show this help'],
      ],
      width,
    ),
    ...(keyed.has(entry.path)
      ? [...section('Keys', KEYS, width), ...section('Typed in place of a prompt', SLASH, width)]
      : []),
    '',
    'Example',
    `  ${exampleOf(entry)}`,
  ]
}

/** Interactive commands with key bindings. */
const keyed: ReadonlySet<string> = new Set(['run', 'session attach'])

const planningRows = (entry: Entry): Row[] =>
  planningOf(entry).map(({ name, type, summary = '' }) => [
    type === 'boolean' ? `--${name}` : `--${name} <digest>`,
    summary,
  ])

/** General options without those whose names the command has for its own. */
function without(own: readonly Row[], general: readonly Row[]): readonly Row[] {
  const names = new Set(own.map(nameOf))
  return general.filter(row => !names.has(nameOf(row)))
}

const nameOf = ([left]: Row): string | undefined => left.split(' ')[0]

/** Help lines of a group of commands; the empty name gives all groups with their verbs. */
export function groupHelp(
  name: string,
  entries: readonly Entry[],
  data: Pick<CommandData, 'version'>,
  width: number,
): string[] {
  if (name !== '') {
    const mine = entries.filter(entry => entry.path.startsWith(`${name} `))
    return [
      `svc ${name} <command>`,
      ...section('Commands', commandRows(mine), width),
      '',
      ...wrapText(`svc ${name} <command> --help shows its options.${listOf(name, mine)}`, width),
    ]
  }
  return [
    ...wrapText(`svc ${data.version}: runs durable agent work on this machine`, width),
    '',
    '  svc <command> [arguments] [options]',
    ...purposeRows(entries).flatMap(([title, rows]) => section(title, rows, width)),
    '',
    ...wrapText(
      'For details: svc help <group>, svc <command> --help. Every command takes -o human|json|jsonl|toon.',
      width,
    ),
  ]
}

/** The note that a subgroup is short for its list. */
function listOf(name: string, entries: readonly Entry[]): string {
  const list = `${name} list`
  return name.includes(' ') && entries.some(({ path }) => path === list) ? ` svc ${name} is svc ${list}.` : ''
}

/** Purposes with their commands and groups. */
const purposes: readonly (readonly [string, readonly string[]])[] = [
  ['Work with agents', ['run', 'inbox', 'session', 'agent', 'provider', 'workspace', 'worktree']],
  ['Automate and delegate work', ['automation', 'bundle', 'hooks', 'task', 'scheduler', 'budget']],
  ['Reach people', ['attention', 'notifications', 'bridge']],
  ['Let agents talk', ['network', 'ch']],
  ['Manage tools, skills and sandboxes', ['tool', 'toolset', 'skill', 'mcp', 'marketplace', 'sandbox']],
  [
    'Set up and operate the daemon',
    [
      'init',
      'import',
      'daemon',
      'service',
      'status',
      'open',
      'overview',
      'top',
      'observe',
      'doctor',
      'logs',
      'support',
      'telemetry',
      'drain',
      'undrain',
      'backup',
      'db',
    ],
  ],
  ['Manage settings, secrets and access', ['config', 'vault', 'auth', 'audit', 'why', 'change', 'undo']],
  ['Extend svc', ['extension', 'plugin', 'resource']],
  ['Arrange windows', ['desktop', 'layout', 'window']],
  ['Use inside a session', ['me', 'whoami', 'spawn']],
  ['Manage the command line', ['completion', 'man', 'version']],
]

/** Commands by purpose, in the order of their typical use; those of extensions at the end. */
function purposeRows(entries: readonly Entry[]): (readonly [string, Row[]])[] {
  const rows = new Map<string, Row>()
  for (const entry of entries) if (!entry.path.includes(' ')) rows.set(entry.path, [callOf(entry), entry.summary])
  for (const [group, verbs] of groupRows(entries)) {
    const [, summary] = rows.get(group) ?? []
    rows.set(group, [group, summary === undefined ? verbs : `${summary}; ${verbs}`])
  }
  const known = new Set(purposes.flatMap(([, names]) => names))
  const other = [...rows.keys()].filter(name => !known.has(name)).sort()
  return [...purposes, ['Extension commands', other] as const].map(([title, names]) => [
    title,
    names.flatMap(name => (rows.has(name) ? [rows.get(name) as Row] : [])),
  ])
}

function groupRows(entries: readonly Entry[]): Row[] {
  const verbs = new Map<string, Set<string>>()
  for (const { path } of entries) {
    const [group = '', verb] = path.split(' ')
    if (verb !== undefined) verbs.set(group, (verbs.get(group) ?? new Set()).add(verb))
  }
  return [...verbs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([group, known]) => [group, [...known].sort().join(', ')])
}

function commandRows(entries: readonly Entry[]): Row[] {
  return [...entries].sort((a, b) => (a.path < b.path ? -1 : 1)).map(entry => [callOf(entry), entry.summary])
}

function callOf(entry: Entry): string {
  return [entry.path, ...argumentsOf(entry).map(({ name, required }) => (required ? `<${name}>` : `[${name}]`))].join(
    ' ',
  )
}

/** Minimum columns for a text beside names; with fewer columns it is below them. */
const leastBeside = 24
const indent = 2

function section(title: string, rows: readonly Row[], width: number): string[] {
  if (rows.length === 0) return []
  const most = Math.min(44, Math.max(...rows.map(([left]) => textWidth(left))))
  const edge = indent + most + indent
  const lines = rows.flatMap(([left, right]) => {
    const head = ' '.repeat(indent) + padText(left, most)
    const begin = textWidth(head) > edge - indent || width - edge < leastBeside ? indent * 3 : edge
    const [first = '', ...more] = wrapped(right, width - begin)
    const rest = more.map(line => ' '.repeat(begin) + line)
    if (begin === edge) return [`${head}  ${first}`.trimEnd(), ...rest]
    const [name = '', ...values] = wrapped(left, width - 2 * indent)
    const heads = [' '.repeat(indent) + name, ...values.map(line => ' '.repeat(2 * indent) + line)]
    return [...heads, ...(right === '' ? [] : [' '.repeat(begin) + first, ...rest])]
  })
  return ['', title, ...lines]
}

/** Like {@link wrapText}, but an overlong value list or JSON is also wrapped after its separators. */
function wrapped(text: string, width: number): string[] {
  return wrapText(text, width).flatMap(line => {
    if (textWidth(line) <= width) return [line]
    const lines = ['']
    for (const part of line.split(/(?<=[|,])/)) {
      if (textWidth(lines.at(-1) + part) <= width) lines[lines.length - 1] += part
      else lines.push(part)
    }
    return lines.filter(part => part !== '')
  })
}

function argumentsOf(entry: Entry) {
  if (entry.kind !== 'route')
    return entry.args.map(({ name, optional, summary }) => ({ name, required: !optional, summary, note: '' }))
  return entry.args.map(({ name, required, summary, values, default: fallback }) => ({
    name,
    required,
    summary,
    note: [values?.join(', '), fallback === undefined ? '' : `(default ${fallback})`].filter(Boolean).join(' '),
  }))
}

/** Maximum number of values listed in help; for longer lists, completion and errors show the similar ones. */
const mostValues = 24

function namedValues(type: string, values: readonly string[] | undefined): string {
  if (values && values.length <= mostValues) return values.join('|')
  return type === 'list' ? 'text' : type
}

const optionNotes: Readonly<Record<string, (option: string) => string | undefined>> = {
  list: () => '(may be repeated)',
  boolean: option => (option === GLOBAL ? undefined : `(or --no-${option})`),
}

function optionRows(entry: Entry): { left: string; right: string; required: boolean }[] {
  if (entry.kind !== 'route') {
    return entry.options.map(({ name, type, values, summary }) => ({
      left: type === 'boolean' ? `--${name}` : `--${name} <${values?.join('|') ?? type}>`,
      right: summary,
      required: false,
    }))
  }
  const rows = entry.options.map(parameter => {
    const { option, type, values, summary, required, default: fallback } = parameter
    const instead = shorthandsFor(entry, parameter)
    const notes = [
      summary,
      optionNotes[type]?.(option),
      fallback === undefined ? '' : `(default ${fallback})`,
      instead.length > 0 && `(${required ? 'required: this, ' : 'or '}${instead.join(' or ')})`,
    ]
    return {
      left: type === 'boolean' ? `--${option}` : `--${option} <${namedValues(type, values)}>`,
      right: notes.filter(Boolean).join(' '),
      required: required && instead.length === 0 && !parameter.fromContext,
    }
  })
  // One row for the body instead of its members.
  if (entry.body !== 'none') {
    rows.push({
      left: '--data <json>',
      right: 'request body as JSON, @file, or - for standard input; options override its members',
      required: false,
    })
  }
  if (entry.follow) rows.push({ left: '--follow', right: 'follow new events', required: false })
  if (isWatchable(entry)) rows.push({ left: '--watch', right: 'refresh the output until Ctrl-C', required: false })
  return rows
}
