import type { CommandContext, CommandOutput } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'

/** A changed file. */
export interface FolderChange {
  /** Relative to the root of the repository, or to the folder. */
  readonly path: string
  readonly change: 'added' | 'modified' | 'deleted'
}

/** The changes in a folder. */
export interface FolderChanges {
  /** The changes sorted by path. */
  readonly changes: readonly FolderChange[]
  /** False: the folder exceeds the limit of the scan. */
  readonly isComplete: boolean
  /** The new commit at HEAD, if there is one. */
  readonly head?: string
}

/** The effect of a key before the line is edited: none (`edit`), complete (`taken`), or a character for the draft set aside. */
export type KeyUse = 'edit' | 'taken' | 'aside'

/** A terminal with a stream above the input line. */
export interface TaskScreen {
  /** Shows an activity indicator; `more` adds details. Undefined: removes it. */
  working(more: (() => string) | undefined): void
  /** Replaces the status lines below the stream. */
  live(lines: readonly string[]): void
  /** Opens the input line; the returned function closes it. */
  edit(options: {
    readonly prompt: string
    readonly history?: readonly string[]
    /** Receives an entered text, and its form in the line; undefined: the end of the input. */
    readonly take: (text: string | undefined, shown: string) => void
    /** Receives each key first: its name (`enter`, `escape`, `ctrl-o`) or its text. */
    readonly key?: (key: string, typed: string) => KeyUse
    /** Resolves to the replacement of the text before the cursor on Tab. */
    readonly complete?: (before: string) => Promise<string | undefined>
    /** Edits a text in a program that takes over the terminal; undefined: the text stays unchanged. */
    readonly compose?: (text: string) => Promise<string | undefined>
  }): () => void
  /** Changes the text before the input; `aside` sets the typed text aside until the next call without it. */
  ask(prompt: string, options?: { readonly aside?: boolean }): void
  /** Whether the input line has text that was not entered. */
  readonly isTyping: boolean
}

/** Text that arrives in chunks. */
export interface Prose {
  push(text: string): void
  /** Ends an unfinished line. */
  end(): void
}

/** Additional services for built-in commands, which commands of extensions do not get. */
export interface TaskContext extends CommandContext {
  /** Options of the type `list` in their given order; absent options are missing. */
  readonly lists?: Readonly<Record<string, readonly string[]>>
  readonly out: CommandOutput & {
    /** Columns of the terminal; Infinity for a pipe or a file. */
    readonly width?: number
    /** Output format; `jsonl` prints one line per row. */
    readonly mode?: string
    /** Prints one of many values, as one line of JSON. */
    row?(value: unknown): void
    /** Lines of at most `width` columns, command lines whole; absent where lines are not wrapped. */
    readonly wrap?: ((text: string, width: number) => string[]) | undefined
    /** Prints a note besides the result, on standard error. */
    note?(text: string): void
  }
  /**
   * Reads standard input to its end when it is not a terminal; undefined when no input arrives within this number of milliseconds,
   * or none can.
   */
  readonly piped?: ((withinMs: number) => Promise<string | undefined>) | undefined
  /** Receives each followed event. */
  readonly watched?: (event: SessionEvent) => void
  readonly screen?: TaskScreen
  /** Edits a text with the person's editor; undefined: it was not saved. */
  readonly compose?: (text: string) => Promise<string | undefined>
  /** Renders Markdown for a terminal; absent when the text stays unchanged. */
  readonly markdown?: () => Prose
  /** Lines of at most `width` columns, wrapped between words. */
  readonly wrap?: (text: string, width: number) => string[]
  /** Calls `fn` each `ms` milliseconds until the returned function is called or the command ends. */
  readonly every?: (ms: number, fn: () => void) => () => void
  /** Records the state of a folder; the returned function lists the changes since. */
  readonly watchFolder?: (root: string) => Promise<() => Promise<FolderChanges>>
}
