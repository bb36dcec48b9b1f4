import type { CommandContext, CommandTerminal } from '../kernel/kit/commands/context.js'
import type { Env } from './address.js'
import type { CommandData } from './commands/command-data.js'
import type { Screen } from './show/screen.js'

/** A stream for text output. */
export interface Sink {
  write(text: string): void
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/** Source of keys, and other events of the terminal. */
export interface Keyboard {
  readonly input: NodeJS.ReadableStream & { setRawMode(on: boolean): unknown; unref?(): unknown }
  /** Ctrl-C. */
  interrupt(): void
  /** Calls `take` when the terminal is resized, until the returned function is called. */
  onResize(take: () => void): () => void
  /** Calls `undo` at any detectable end of the process, unless the returned function is called before. */
  onEnd(undo: () => void): () => void
}

/** The environment of the CLI, which tests replace. */
export interface Io {
  readonly env: Env
  readonly cwd: string
  /** Folder of `svc.cjs` and the rest of the build. */
  readonly root: string
  readonly stdout: Sink
  readonly stderr: Sink
  stdin(): Promise<string>
  /**
   * Reads standard input to its end if it is a pipe or a file; undefined when no input arrives within this number of milliseconds,
   * or none can.
   */
  readonly piped?: ((withinMs: number) => Promise<string | undefined>) | undefined
  /** See {@link CommandContext}; present when standard input is a terminal. */
  readonly unseen?: CommandContext['unseen'] | undefined
  /** Present when input and output are the same terminal. */
  readonly terminal?: CommandTerminal | undefined
  /** Standard input and output as one terminal; absent without cursor control. */
  readonly keyboard?: Keyboard | undefined
  /** Creates the screen of a command with a stream; absent without cursor control. */
  readonly openScreen?: (() => Promise<Screen>) | undefined
  /** The created screen. */
  readonly screen?: Screen | undefined
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal
  /** Takes the next Ctrl-C before the signal aborts, see {@link CommandContext}; by default nothing takes it. */
  readonly onInterrupt?: CommandContext['onInterrupt']
  /**
   * Rejects when no pending work can continue the command, because the process would otherwise end with success. Default: never.
   */
  readonly idle?: () => Promise<never>
  /** Interval of the liveness probes during a long request, and their time limit, in milliseconds. */
  readonly probe?: { readonly everyMs: number; readonly withinMs: number }
  /** Time limit for the completion of IDs in milliseconds; default 200. */
  readonly candidatesMs?: number
  /** Command data that replaces `commands.json` in {@link root}. */
  readonly data?: CommandData
}
