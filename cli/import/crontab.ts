import { createHash } from 'node:crypto'
import { shown } from '../../kernel/kit/text.js'
import { lifecycleCommand } from '../../plugins/work/automation/lifecycle-command.js'
import { scheduleProblem } from '../../plugins/work/automation/schedule.js'
import { isTimezone } from '../../plugins/work/automation/zone.js'
import type { Schedule } from '../../schemas/automation.js'
import type { SourceFile } from './foreign-file.js'
import { type Around, Findings, type Found, NotCarried, type SourceLocation, slug } from './plan.js'

/** The agent that runs its prompt as a script. */
export const COMMAND_AGENT = 'crontab'

/** Maximum number of lines per crontab. */
const MOST_LINES = 10_000

const NICKNAMES: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

interface Field {
  readonly name: string
  readonly least: number
  readonly most: number
  readonly names?: readonly string[]
}
const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of the month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, names: MONTHS },
  { name: 'day of the week', least: 0, most: 7, names: DAYS },
]

/** Supported shells, which get the script with `-c`. */
const SHELLS = ['sh', 'bash', 'dash', 'ash', 'ksh', 'mksh', 'zsh']

/** Variables of a crontab for cron itself, with the reason for which they are not imported. */
const FOR_CRON: Readonly<Record<string, string>> = {
  MAILTO:
    'svc does not send e-mail; the output is in the run (svc automation runs list), and svc notifications reports failed runs',
  MAILFROM: 'svc does not send e-mail',
  CONTENT_TYPE: 'svc does not send e-mail',
  CONTENT_TRANSFER_ENCODING: 'svc does not send e-mail',
  RANDOM_DELAY: 'svc has no random delay; its jobs run at the exact minute',
  START_HOURS_RANGE: 'it is for anacron; in svc, catch_up_policy of a job decides about missed runs',
  CRON_WITHIN: 'svc has no such limit; see misfire_grace_seconds of a schedule',
}

interface Settings {
  readonly zone: string | undefined
  readonly shell: string
  readonly variables: ReadonlyMap<string, string>
}

/** Imports crontabs: each command becomes a job that runs it as a script. */
export function importCrontab(files: readonly SourceFile[], around: Around): Found {
  const found = new Findings()
  const times = new Map<string, number>()
  for (const file of files) readCrontab(file, around, found, times)
  if (found.wanted.length > 0 && around.agent === undefined) found.want(commandAgent(found.wanted[0] as SourceLocation))
  return found
}

/** An agent that runs its prompt as a script in the terminal of its session. */
export const commandAgent = ({ file, line }: SourceLocation) =>
  ({
    kind: 'agent',
    name: COMMAND_AGENT,
    file,
    line,
    agent: {
      command: 'svc-command-agent',
      permissions: 'approve-all',
      prompt: 'You run the shell script that a prompt is, and nothing else. No model is involved.',
    },
    notes: [],
  }) as const

function readCrontab(
  { path: file, text }: SourceFile,
  around: Around,
  found: Findings,
  times: Map<string, number>,
): void {
  const variables = new Map<string, string>()
  let zone: string | undefined
  let shell = '/bin/sh'
  const lines = text.split('\n')
  if (lines.length > MOST_LINES)
    found.leave({ file, line: MOST_LINES + 1 }, 'lines', `more than ${MOST_LINES} lines; the others are ignored`)
  for (const [index, written] of lines.slice(0, MOST_LINES).entries()) {
    const line = written.trim()
    const location = { file, line: index + 1 }
    if (line === '' || line.startsWith('#')) continue
    const variable = variableOf(line)
    if (!variable) {
      readCommand(line, location, { zone, shell, variables }, around, found, times)
      continue
    }
    const [name, value] = variable
    const why = FOR_CRON[name]
    if (name === 'CRON_TZ') zone = value
    else if (name === 'SHELL') shell = value
    else if (why !== undefined) {
      if (value !== '') found.leave(location, name, why)
    } else variables.set(name, value)
  }
}

/** `NAME = value`; the name and the value may be quoted. */
function variableOf(line: string): readonly [name: string, value: string] | undefined {
  const [, quoted, bare = quoted, value = ''] =
    /^(?:["']([A-Za-z_]\w*)["']|([A-Za-z_]\w*))\s*=\s*(.*)$/.exec(line) ?? []
  const name = bare ?? quoted
  if (name === undefined) return undefined
  const inner = /^"(.*)"$/.exec(value)?.[1] ?? /^'(.*)'$/.exec(value)?.[1]
  return [name, inner ?? value.trimEnd()]
}

function readCommand(
  line: string,
  location: SourceLocation,
  settings: Settings,
  around: Around,
  found: Findings,
  times: Map<string, number>,
): void {
  const { rest, ...timing } = splitLine(line)
  found.entry(location, commandName(rest === '' ? line : rest), () => {
    const expr = exprOf(timing)
    const { command, input } = splitInput(around.hasUsers ? ofUser(rest, around.user) : rest)
    if (command === '') throw new NotCarried('there is no command after the schedule')
    const { zone = around.timezone, shell } = settings
    if (!isTimezone(zone)) throw new NotCarried(`CRON_TZ ${shown(zone, 60)} is not a time zone of this system`)
    if (!SHELLS.includes(shell.split('/').at(-1) ?? '') || !/^\/[\w./-]+$/.test(shell))
      throw new NotCarried(`SHELL ${shown(shell, 60)} is not supported; use one of ${SHELLS.join(', ')}`)
    const schedule: Schedule = { mode: 'cron', expr, timezone: zone }
    const problem = scheduleProblem(schedule)
    if (problem !== undefined) throw new NotCarried(problem)
    const prompt = scriptOf(command, input, settings)
    if (lifecycleCommand(prompt) !== undefined)
      throw new NotCarried('it stops or restarts the daemon that would run it; leave it to cron')
    const name = nameOf(command, times)
    const notes = around.agent === undefined ? [] : [`the agent ${around.agent} is asked to run it`]
    found.want({ kind: 'job', ...location, name, agent: around.agent ?? COMMAND_AGENT, prompt, schedule, notes })
  })
}

/** A line of a system crontab without its user. @throws NotCarried for another user than the importing one */
function ofUser(text: string, caller: string): string {
  const [, user = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(text) ?? []
  if (rest === '') throw new NotCarried('a user and a command are expected after the schedule')
  if (user !== caller)
    throw new NotCarried(
      `it runs as ${user}; jobs run as the user of the daemon, ${caller}: run svc import as that user`,
    )
  return rest
}

/** A schedule line: a nickname or five fields, and the rest. */
interface Line {
  readonly nickname?: string
  readonly fields?: readonly string[]
  readonly rest: string
}

function splitLine(line: string): Line {
  const [word = ''] = line.split(/\s+/, 1)
  if (word.startsWith('@')) return { nickname: word.toLowerCase(), rest: line.slice(word.length).trim() }
  // A leading hyphen disables cron's log for the command.
  const match = /^-?(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(.*))?$/.exec(line)
  return match ? { fields: match.slice(1, 6), rest: match[6] ?? '' } : { rest: '' }
}

/** The schedule in the form of svc. @throws NotCarried */
export function exprOf({ nickname, fields }: Omit<Line, 'rest'>): string {
  if (nickname === '@reboot') throw new NotCarried('svc has no jobs at the start of the machine; use a systemd unit')
  if (nickname !== undefined) {
    const expr = Object.hasOwn(NICKNAMES, nickname) ? NICKNAMES[nickname] : undefined
    if (expr !== undefined) return expr
    throw new NotCarried(`${shown(nickname, 40)} is not one of ${Object.keys(NICKNAMES).join(', ')}`)
  }
  if (!fields) throw new NotCarried('it is neither a variable nor a schedule of five fields with a command')
  return FIELDS.map((field, index) => {
    const written = fields[index] as string
    try {
      return fieldOf(written, field)
    } catch (error) {
      throw error instanceof NotCarried
        ? new NotCarried(`${field.name} ${shown(written, 40)}: ${error.message}`)
        : error
    }
  }).join(' ')
}

/** A numeric field, which has the same meaning in cron and svc. @throws NotCarried */
function fieldOf(written: string, field: Field): string {
  if (written.includes('~')) throw new NotCarried('a random time is not supported; write a fixed one')
  return written
    .split(',')
    .map(part => rangeOf(part, field))
    .join(',')
}

/** @throws NotCarried */
function rangeOf(part: string, { least, most, names }: Field): string {
  const number = (text: string) => {
    const at = names?.indexOf(text.toLowerCase()) ?? -1
    if (at >= 0) return at + (least === 1 ? 1 : 0)
    return /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  }
  const [, range, from = '', to, step] = /^(\*|(\w+)(?:-(\w+))?)(?:\/(\d{1,2}))?$/.exec(part) ?? []
  if (range === undefined) throw new NotCarried(`${shown(part, 40)} is not a number, range or step`)
  if (step !== undefined && Number(step) < 1) throw new NotCarried('a step has to be at least 1')
  if (range === '*') return step === undefined ? '*' : `*/${Number(step)}`
  const first = number(from)
  const last = to === undefined ? first : number(to)
  if (!(first >= least && last <= most))
    throw new NotCarried(`values are ${least} to ${most}${names ? ' and names' : ''}`)
  if (first > last) throw new NotCarried('a range must not run backwards')
  if (step !== undefined && to === undefined) throw new NotCarried('a step needs a range or *')
  return spelled(first, last, Number(step ?? 1), most === 7)
}

/** A range of values. A range of weekdays that contains 7 is written day by day, because 7 and 0 are both Sunday. */
function spelled(first: number, last: number, step: number, isDays: boolean): string {
  if (isDays && last === 7) {
    const days = new Set<number>()
    for (let day = first; day <= last; day += step) days.add(day % 7)
    return [...days].sort((a, b) => a - b).join(',')
  }
  return `${first}${last > first ? `-${last}` : ''}${step > 1 && last > first ? `/${step}` : ''}`
}

/**
 * Cron's own rule: the first `%` ends the command, the rest is its input, with a line end for each further `%`; `\\%` is a literal
 * `%`.
 */
function splitInput(text: string): { readonly command: string; readonly input: string | undefined } {
  const parts = text.split(/(?<!\\)%/).map(part => part.replaceAll('\\%', '%'))
  const [command = '', ...rest] = parts
  return { command: command.trim(), input: rest.length === 0 ? undefined : rest.join('\n') }
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A script equivalent to cron's execution: variables of the crontab, home folder, command and input. */
function scriptOf(command: string, input: string | undefined, { shell, variables }: Settings): string {
  const exported = [...variables].map(([name, value]) => `export ${name}=${quoted(value)}`)
  const lines = [`#!${shell}`, ...exported, 'cd "$HOME"']
  if (input === undefined) return [...lines, command].join('\n')
  return [...lines, `printf '%s\\n' ${quoted(input)} | {`, command, '}'].join('\n')
}

/** The command of a job in short form, for people. */
function commandName(command: string): string {
  return shown(command.replace(/\s+/g, ' '), 48).slice(1, -1)
}

/** A stable name for a command, so that a second import finds the job of the first one. */
function nameOf(command: string, times: Map<string, number>): string {
  const word = command.split(/[\s;|&<>()]+/).find(part => part !== '' && !/^[A-Za-z_]\w*=/.test(part)) ?? ''
  const hash = createHash('sha256').update(command).digest('hex').slice(0, 6)
  const name = `cron-${slug(word.split('/').at(-1) ?? '', 'command', 32)}-${hash}`
  const time = (times.get(name) ?? 0) + 1
  times.set(name, time)
  return time === 1 ? name : `${name}-${time}`
}
