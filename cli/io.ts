import type { CommandContext, CommandTerminal } from '../kernel/kit/commands/context.js'
import type { Env } from './address.js'
import type { CommandData } from './commands/command-data.js'
import type { Screen } from './show/screen.js'

/** A stream that text is written to. */
export interface Sink {
  write(text: string): void
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/** Where keys come from, and what becomes of the terminal besides. */
export interface Keyboard {
  readonly input: NodeJS.ReadableStream & { setRawMode(on: boolean): unknown; unref?(): unknown }
  /** Ctrl-C. */
  interrupt(): void
  /** Calls `take` when the terminal has another size, until the returned function is called. */
  onResize(take: () => void): () => void
  /** Calls `undo` when the process ends in any way that it can notice, unless the returned function is called before. */
  onEnd(undo: () => void): () => void
}

/** What the command line has of the world around it; the tests hand in their own. */
export interface Io {
  readonly env: Env
  readonly cwd: string
  /** Folder that `svc.cjs` and the rest of the build lie in. */
  readonly root: string
  readonly stdout: Sink
  readonly stderr: Sink
  stdin(): Promise<string>
  /**
   * Standard input to its end where it is a pipe or a file; undefined where nothing came within so many milliseconds, or nothing can.
   */
  readonly piped?: ((withinMs: number) => Promise<string | undefined>) | undefined
  /** See there; where standard input is a terminal. */
  readonly unseen?: CommandContext['unseen'] | undefined
  /** Where input and output are one. */
  readonly terminal?: CommandTerminal | undefined
  /** Standard input and output as one terminal; absent where it cannot move its cursor. */
  readonly keyboard?: Keyboard | undefined
  /** Makes the screen of a command that shows a stream; absent where the terminal cannot move its cursor. */
  readonly openScreen?: (() => Promise<Screen>) | undefined
  /** The one that was made. */
  readonly screen?: Screen | undefined
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal
  /** Takes the next Ctrl-C before the signal aborts, see there; default: nobody can. */
  readonly onInterrupt?: CommandContext['onInterrupt']
  /**
   * Rejects when nothing is under way any more that could bring a command on: the process would end as if all was well. Default: never.
   */
  readonly idle?: () => Promise<never>
  /** When a request takes long the daemon is asked whether it lives, so often and with so long to answer; milliseconds. */
  readonly probe?: { readonly everyMs: number; readonly withinMs: number }
  /** Milliseconds that the completion of ids has; default 200. */
  readonly candidatesMs?: number
  /** Command data instead of `commands.json` of {@link root}. */
  readonly data?: CommandData
}
