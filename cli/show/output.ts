import type { CliColumn } from '../../kernel/kit/annotations/index.js'
import type { ColorName, CommandOutput } from '../../kernel/kit/commands/context.js'
import { type CliFault, usageFault } from '../fault.js'
import type { Io, Sink } from '../io.js'
import { idOf } from './cells.js'
import { renderFields, renderTable } from './table.js'
import { cleanLine, cleanText, closeColors, jsonText, wrapLines, wrapSentence } from './text.js'
import { toToon } from './toon.js'

/** Output formats. */
export const outputModes = ['human', 'json', 'jsonl', 'toon'] as const
export type OutputMode = (typeof outputModes)[number]

/** Default width of a terminal. */
const terminalWidth = 80
/** Table lines per write. */
const linesAtOnce = 500

const colorCodes: Readonly<Record<ColorName, number>> = {
  bold: 1,
  dim: 2,
  italic: 3,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  inverse: 7,
}

/**
 * Output in one of the four formats. `json` is a document with two-space indent, `jsonl` has one line per row (or one line without
 * rows), `toon` is the compact notation. `quiet` omits messages for people after a success.
 */
export class Output implements CommandOutput {
  readonly #colors: boolean
  /** Active colours at the end of a text chunk, which the next chunk continues; a line in between ends them. */
  #colorsOfText = ''
  /** The command itself decides which IDs `quiet` prints. */
  #hasIds = false

  constructor(
    private readonly io: Pick<Io, 'stdout' | 'stderr' | 'env'>,
    readonly mode: OutputMode,
    readonly quiet = false,
    private readonly wraps = true,
  ) {
    this.#colors = mode === 'human' && hasColors(io.stdout, io.env)
  }

  get json(): boolean {
    return this.mode !== 'human'
  }

  get width(): number {
    return widthOf(this.io.env, this.io.stdout)
  }

  /** Absent where lines are not wrapped. */
  get wrap(): typeof wrapSentence | undefined {
    return this.mode === 'human' && this.wraps && this.io.stdout.isTTY ? wrapSentence : undefined
  }

  line(text: string): void {
    this.#print(text, this.wrap ? this.width : Number.POSITIVE_INFINITY)
  }

  #print(text: string, width: number): void {
    this.#colorsOfText = ''
    if (this.mode !== 'human' || this.quiet) return
    const clean = closeColors(cleanText(text, this.#colors)).text
    this.#write(clean.length <= width ? clean : wrapProse(clean, width))
  }

  text(text: string): void {
    if (this.mode !== 'human' || this.quiet) return
    const piece = closeColors(cleanText(text, this.#colors), this.#colorsOfText)
    this.#colorsOfText = piece.open
    this.io.stdout.write(piece.text)
  }

  id(id: string): void {
    this.#hasIds = true
    if (this.quiet) this.essential(id)
  }

  /** A line that `quiet` keeps: the ID that a script needs. */
  essential(text: string): void {
    if (this.mode === 'human') this.#write(cleanLine(text))
  }

  value(value: unknown): void {
    if (this.quiet) return
    if (this.mode === 'json') this.#write(jsonText(value, 2) ?? 'null')
    else if (this.mode === 'jsonl')
      for (const row of Array.isArray(value) ? value : [value]) this.#write(jsonText(row) ?? 'null')
    else if (this.mode === 'toon') this.#write(toToon(value))
    else this.#write(cleanText(typeof value === 'string' ? value : toToon(value)))
  }

  /** One of many consecutive values: a line of JSON in every structured format except toon. */
  row(value: unknown): void {
    if (!this.quiet) this.#write(this.mode === 'toon' ? toToon(value) : (jsonText(value) ?? 'null'))
  }

  table(rows: readonly unknown[], columns: readonly CliColumn[], empty = 'nothing to show'): void {
    if (this.mode !== 'human') return
    if (this.quiet) {
      const ids = this.#hasIds ? [] : rows.map(row => idOf(row, columns))
      for (const id of ids) if (id !== undefined) this.essential(id)
    } else if (rows.length === 0) {
      for (const line of wrapLines(empty, this.width)) this.line(this.color('dim', line))
    } else {
      const lines = renderTable(rows, columns, this.#style()).map(
        line => closeColors(cleanText(line, this.#colors)).text,
      )
      for (let at = 0; at < lines.length; at += linesAtOnce) this.#write(lines.slice(at, at + linesAtOnce).join('\n'))
    }
  }

  /** A note for the person besides the result, even when a program reads the result. */
  note(text: string): void {
    if (!this.quiet) this.#tell(cleanLine(`note: ${text}`))
  }

  fields(item: unknown, fields: readonly CliColumn[]): void {
    // Wrapped already.
    for (const line of renderFields(item, fields, this.#style())) this.#print(line, Number.POSITIVE_INFINITY)
  }

  color(name: ColorName, text: string): string {
    return paint(this.#colors, name, text)
  }

  /** Prints an error: the error body on stdout in structured formats, else text and next step on stderr. */
  fault(fault: CliFault): void {
    if (this.json) {
      const body = fault.toBody()
      this.#write(
        this.mode === 'toon' ? toToon(body) : (jsonText(body, this.mode === 'json' ? 2 : undefined) ?? 'null'),
      )
      return
    }
    const { message, code, why, more } = fault
    const lines = [`error: ${cleanText(message)}`, `  code: ${cleanLine(code)}`]
    if (why !== undefined) lines.push(`  cause: ${cleanLine(why)}`)
    for (const [name, text] of Object.entries(more.details ?? {}))
      lines.push(`  ${cleanLine(name)}: ${cleanLine(text)}`)
    if (more.next !== undefined) lines.push(`  next: ${cleanLine(more.next)}`)
    this.#tell(...lines)
  }

  /** Lines for the person, wrapped on a terminal. A command stays whole, so that it can be copied. */
  #tell(...lines: readonly string[]): void {
    const { stderr, env } = this.io
    const width = stderr.isTTY ? widthOf(env, stderr) : Number.POSITIVE_INFINITY
    const wrapped = lines.flatMap(line => (/^ {2}next: svc /.test(line) ? [line] : wrapLines(line, width)))
    const colors = hasColors(stderr, env)
    const text = wrapped.join('\n').replace(/^error:/, word => paint(colors, 'red', word))
    stderr.write(`${text.replace(/^ {2}next:/m, word => `  ${paint(colors, 'dim', word.trim())}`)}\n`)
  }

  #style() {
    return { width: this.width, now: Date.now(), header: (text: string) => this.color('bold', text) }
  }

  #write(text: string): void {
    this.io.stdout.write(`${text}\n`)
  }
}

/** Text with its sentences wrapped, those after a label below their start. Other indented lines stay whole: code, commands. */
function wrapProse(text: string, width: number): string {
  const wrap = (line: string) => (/^(?: +(?! |\S+ {2,})|[-+$>@{])/.test(line) ? line : wrapLines(line, width))
  return text.split('\n').flatMap(wrap).join('\n')
}

/** The width of `COLUMNS` or of the terminal; Infinity for a pipe or a file, in which values must not be cut. */
export function widthOf(env: Io['env'], sink: Sink): number {
  const wanted = Number(env.COLUMNS)
  if (Number.isInteger(wanted) && wanted > 0) return wanted
  return sink.isTTY ? sink.columns || terminalWidth : Number.POSITIVE_INFINITY
}

function hasColors(sink: Sink, env: Io['env']): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return sink.isTTY === true && env.TERM !== 'dumb'
}

function paint(on: boolean, name: ColorName, text: string): string {
  return on ? `\x1b[${colorCodes[name]}m${text}\x1b[0m` : text
}

/**
 * The output format requested by the arguments. It is determined before any other parsing, so that an error in the arguments has
 * that format too. The first one wins.
 */
export function outputModeOf(argv: readonly string[]): OutputMode {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  for (const [i, word] of words.entries()) {
    if (word === '--json') return 'json'
    const bound = /^--output=(.*)$/.exec(word)
    const mode = bound ? bound[1] : word === '-o' || word === '--output' ? words[i + 1] : undefined
    if (mode === undefined) continue
    const known = outputModes.find(name => name === mode)
    if (known === undefined)
      throw usageFault(`unknown output ${JSON.stringify(mode)}; choose ${outputModes.join(', ')}`, 'svc help')
    return known
  }
  return 'human'
}
