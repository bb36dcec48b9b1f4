import type { Frame } from '../../contract/route.js'
import type { CliColumn } from '../annotations/cli.js'

/**
 * What a hand-written command is called with: `run(context)` of the module that its surface entry loads. It may return an
 * exit code; without one it is 0.
 */
export interface CommandContext {
  /** What was called, `things add`: one function can run several commands. */
  readonly path: string
  /** Positional arguments by name; optional ones that were not given are absent. */
  readonly args: Readonly<Record<string, string>>
  /** Options by their name without `--`. */
  readonly options: Readonly<Record<string, string | number | boolean | undefined>>
  readonly client: CommandClient
  readonly out: CommandOutput
  /** Absolute; relative paths of the caller count from here. */
  readonly cwd: string
  /** Home of the daemon, absolute; it need not be there. */
  readonly home: string
  /** A text file, relative to `cwd`; `-` is standard input. */
  readFile(path: string): Promise<string>
  stdin(): Promise<string>
  /**
   * One line that is typed at `prompt` and not shown; undefined when there is none (Ctrl-D). Absent where standard input is no
   * terminal.
   */
  readonly unseen?: ((prompt: string) => Promise<string | undefined>) | undefined
  /** Who types answers; absent where input or output is no terminal, and where the output is for a program. */
  readonly terminal?: CommandTerminal | undefined
  /**
   * Asks every second until the caller interrupts, and shows each reply: on a terminal in place of the one before, for a program when
   * it differs. Absent where text goes to a file or a pipe.
   */
  watch?(ask: () => Promise<unknown>, show: (reply: unknown, out: CommandOutput) => void): Promise<void>
  /**
   * Gives the command the whole terminal, with its keys, until `use` resolves or the command is ended; the terminal is put back in any
   * case. Absent where standard input or output is no terminal, where it cannot move its cursor, and where the output is for a program.
   */
  readonly wholeScreen?: (<T>(use: (screen: CommandScreen) => Promise<T>) => Promise<T>) | undefined
  /** Aborts when the caller presses Ctrl-C, unless {@link onInterrupt} took it. */
  readonly signal: AbortSignal
  /**
   * Takes the next Ctrl-C, and that one alone, in place of the end of the command; the returned function gives it back. Whoever has
   * something to undo takes with `anyEnd` also SIGTERM, the end of the terminal and that of whoever reads the output, and gives it
   * back when it is undone.
   */
  onInterrupt(take: () => void, options?: { readonly anyEnd?: boolean }): () => void
  /** Ends the command with exit code 1 (4 for a code that ends in `not_found`, 2 for `usage`). `next`: what helps. */
  fault(code: string, text: string, next?: string): never
}

/** Requests to the daemon; error replies end the command with their text and exit code unless they are caught. */
export interface CommandClient {
  /**
   * @param path absolute path and query, already encoded
   * @param body sent as JSON; bytes as they are, with the content type of `headers`. With an `accept` there, the reply is its bytes
   * @param options `waits`: it is answered when there is something to tell, so nobody is shown that it takes its time
   */
  request(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly waits?: boolean; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<unknown>
  /** Goes on by itself after a cut; ends when the daemon ends the stream. */
  stream(path: string, options?: { lastEventId?: string; signal?: AbortSignal }): AsyncIterable<Frame>
}

/** A person at a terminal. */
export interface CommandTerminal {
  /** Every line that is typed; undefined at the end of the input (Ctrl-D). The returned function ends it. */
  onLine(take: (line: string | undefined) => void): () => void
  /** Milliseconds of a clock that only goes forward: how long somebody had to read. */
  now(): number
}

/** The whole terminal. */
export interface CommandScreen {
  readonly size: { readonly columns: number; readonly rows: number }
  /** The lines that `print` prints, fitted to a width. */
  lines(print: (out: CommandOutput) => void, width: number): string[]
  /** Puts lines of {@link lines} in place of what stands there; more than there are rows are left out. */
  draw(lines: readonly string[]): void
  /** Tells each key (`j`, `?`, `up`, `pageup`, `enter`, `escape`, `space`), `resize` for another size, and `tick` each second. */
  onKey(take: (key: string) => void): void
}

export type ColorName = 'bold' | 'dim' | 'italic' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'inverse'

/** Output of a command, in the form that the caller asked for. */
export interface CommandOutput {
  /** A structured form was asked for: give the data to `value`; lines and tables are not printed then. */
  readonly json: boolean
  /** A line for people. It is cleaned of everything that could act on the terminal but colours made by `color`. */
  line(text: string): void
  /** The id of what was made: all that is printed when the command is to be quiet, and nothing otherwise. */
  id(id: string): void
  /** A piece of a line for people, shown at once. It is cleaned like a line. */
  text(text: string): void
  /** Data: for programs in their form, for people in a readable one. */
  value(value: unknown): void
  /** One of many values that come one after the other: a line in every structured form but toon. */
  row?(value: unknown): void
  /** A table for people, fitted to the terminal. */
  table(rows: readonly unknown[], columns: readonly CliColumn[], empty?: string): void
  /** Coloured where colours are on. */
  color(name: ColorName, text: string): string
}
