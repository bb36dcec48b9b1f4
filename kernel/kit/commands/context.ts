import type { Frame } from '../../contract/route.js'
import type { CliColumn } from '../annotations/cli.js'

/**
 * The context of a hand-written command: argument of `run(context)` in the module that its surface entry loads. `run` may return an
 * exit code; the default is 0.
 */
export interface CommandContext {
  /** Path of the called command, `things add`: one function can implement several. */
  readonly path: string
  /** Positional arguments by name; optional ones that were not given are absent. */
  readonly args: Readonly<Record<string, string>>
  /** Options by their name without `--`. */
  readonly options: Readonly<Record<string, string | number | boolean | undefined>>
  readonly client: CommandClient
  readonly out: CommandOutput
  /** Absolute; relative paths of the caller start here. */
  readonly cwd: string
  /** Home of the daemon, absolute; it may not exist. */
  readonly home: string
  /** A text file, relative to `cwd`; `-` is standard input. */
  readFile(path: string): Promise<string>
  stdin(): Promise<string>
  /**
   * Reads one line at `prompt` without showing it; undefined at the end of the input (Ctrl-D), and when `signal` aborts. Absent when
   * standard input is not a terminal.
   */
  readonly unseen?: ((prompt: string, signal?: AbortSignal) => Promise<string | undefined>) | undefined
  /** Reads answers of a person. Absent when input or output is not a terminal, and when the output is for a program. */
  readonly terminal?: CommandTerminal | undefined
  /**
   * Calls `ask` every second until the caller interrupts, and shows each reply: a terminal replaces the previous one, a program
   * gets it only if it differs. Absent for text to a file or a pipe.
   */
  watch?(ask: () => Promise<unknown>, show: (reply: unknown, out: CommandOutput) => void): Promise<void>
  /**
   * Gives the command the whole terminal, including its keys, until `use` resolves or the command ends; the terminal is always
   * restored. Absent when standard input or output is not a terminal, when it cannot move its cursor, and when the output is for a
   * program.
   */
  readonly wholeScreen?: (<T>(use: (screen: CommandScreen) => Promise<T>) => Promise<T>) | undefined
  /** Aborts when the caller presses Ctrl-C, unless {@link onInterrupt} took it. */
  readonly signal: AbortSignal
  /**
   * Handles the next Ctrl-C, once, instead of ending the command; the returned function undoes that. With `anyEnd` it also handles
   * SIGTERM and the end of the terminal or of the output's reader: for a command that must first undo something.
   */
  onInterrupt(take: () => void, options?: { readonly anyEnd?: boolean }): () => void
  /**
   * Ends the command with exit code 1 (4 for a code that ends in `not_found`, 2 for `usage`). `next`: the next step for the user.
   */
  fault(code: string, text: string, next?: string): never
}

/** Requests to the daemon; error replies end the command with their text and exit code unless they are caught. */
export interface CommandClient {
  /**
   * @param path absolute path and query, already encoded
   * @param body sent as JSON; bytes unchanged, with the content type of `headers`. With an `accept` header the reply is its bytes
   * @param options `waits`: the reply may take long by design, so no progress note is shown, or this one
   */
  request(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly waits?: boolean | string; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<unknown>
  /** Reconnects after an interruption; ends when the daemon ends the stream. */
  stream(path: string, options?: { lastEventId?: string; signal?: AbortSignal }): AsyncIterable<Frame>
}

/** A person at a terminal. */
export interface CommandTerminal {
  /** Calls `take` with every typed line, undefined at the end of the input (Ctrl-D), until the returned function is called. */
  onLine(take: (line: string | undefined) => void): () => void
  /** Monotonic milliseconds, to measure reading times. */
  now(): number
}

/** The whole terminal. */
export interface CommandScreen {
  readonly size: { readonly columns: number; readonly rows: number }
  /** The lines that `print` prints, fitted to a width. */
  lines(print: (out: CommandOutput) => void, width: number): string[]
  /** Replaces the screen by lines of {@link lines}; those beyond the last row are left out. */
  draw(lines: readonly string[]): void
  /**
   * Calls `take` with each key (`j`, `?`, `up`, `pageup`, `enter`, `escape`, `space`), with `resize` after a change of size, and
   * with `tick` each second.
   */
  onKey(take: (key: string) => void): void
}

export type ColorName = 'bold' | 'dim' | 'italic' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'inverse'

/** Output of a command, in the form that the caller chose. */
export interface CommandOutput {
  /** The caller chose a structured form: pass the data to `value`; lines and tables are not printed. */
  readonly json: boolean
  /** A line for people, without control sequences but colours of `color`. Sentences wrap on a terminal, commands in them do not. */
  line(text: string): void
  /** The id of a created thing: the only output of a quiet command, and not printed otherwise. */
  id(id: string): void
  /** A piece of a line for people, shown at once and cleaned like a line. */
  text(text: string): void
  /** Data: in the chosen structured form for programs, readable for people. */
  value(value: unknown): void
  /** One of several values in sequence: one line each in every structured form except toon. */
  row?(value: unknown): void
  /** A remark for people, on standard error. */
  note?(text: string): void
  /** A table for people, fitted to the terminal. */
  table(rows: readonly unknown[], columns: readonly CliColumn[], empty?: string): void
  /** The text in a colour, if colours are on. */
  color(name: ColorName, text: string): string
}
