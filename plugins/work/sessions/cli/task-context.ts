import type { CommandContext, CommandOutput } from '../../../../kernel/plugin.js'
import type { SessionEvent } from '../../../../schemas/sessions.js'

/** A file that is not as it was. */
export interface FolderChange {
  /** Relative to the root of the repository, or to the folder. */
  readonly path: string
  readonly change: 'added' | 'modified' | 'deleted'
}

/** What changed in a folder. */
export interface FolderChanges {
  /** By path. */
  readonly changes: readonly FolderChange[]
  /** False: the folder is larger than what is looked at. */
  readonly isComplete: boolean
  /** The new commit at HEAD, where there is one. */
  readonly head?: string
}

/** The effect of a key before the line is edited: none (`edit`), complete (`taken`), or a character for the draft set aside. */
export type KeyUse = 'edit' | 'taken' | 'aside'

/** A terminal on which a stream goes on above the line that is typed. */
export interface TaskScreen {
  /** Says that something goes on; `more` tells what is known of it. Undefined: nothing goes on. */
  working(more: (() => string) | undefined): void
  /** Lines about what goes on, below the stream, in place of those before. */
  live(lines: readonly string[]): void
  /** Opens the line that is typed; the returned function closes it. */
  edit(options: {
    readonly prompt: string
    readonly history?: readonly string[]
    /** A text that was typed, and how it stood in the line; undefined: the end of the input. */
    readonly take: (text: string | undefined, shown: string) => void
    /** Receives each key first: its name (`enter`, `escape`, `ctrl-o`) or its text. */
    readonly key?: (key: string, typed: string) => KeyUse
    /** Resolves to what the Tab key puts in place of the text before the cursor. */
    readonly complete?: (before: string) => Promise<string | undefined>
    /** Edits a text with a program that gets the terminal; undefined: it stays as it is. */
    readonly compose?: (text: string) => Promise<string | undefined>
  }): () => void
  /** Another text before what is typed; with `aside`, what is typed is set aside until the next one without. */
  ask(prompt: string, options?: { readonly aside?: boolean }): void
  /** Something is typed that was not entered. */
  readonly isTyping: boolean
}

/** Text that comes piece by piece. */
export interface Prose {
  push(text: string): void
  /** Ends an unfinished line. */
  end(): void
}

/** What the command line gives its own commands beyond what commands of extensions get. */
export interface TaskContext extends CommandContext {
  /** Options of the type `list`, in the order in which they were given; what was not given is absent. */
  readonly lists?: Readonly<Record<string, readonly string[]>>
  readonly out: CommandOutput & {
    /** Columns of the terminal; Infinity for a pipe or a file. */
    readonly width?: number
    /** Form of what is printed; of those for programs, `jsonl` is a line for each row. */
    readonly mode?: string
    /** One of many values, in one line of JSON. */
    row?(value: unknown): void
    /** Something beside the result, on standard error. */
    note?(text: string): void
  }
  /**
   * What comes on standard input where that is no terminal, to its end; undefined where nothing came within so many milliseconds, or
   * nothing can.
   */
  readonly piped?: ((withinMs: number) => Promise<string | undefined>) | undefined
  /** Receives each followed event. */
  readonly watched?: (event: SessionEvent) => void
  readonly screen?: TaskScreen
  /** Edits a text with the editor of the caller; undefined: it was not saved. */
  readonly compose?: (text: string) => Promise<string | undefined>
  /** Renders Markdown for a terminal; absent where the text is to stay as it is. */
  readonly markdown?: () => Prose
  /** Lines of at most `width` columns, broken between words. */
  readonly wrap?: (text: string, width: number) => string[]
  /** Calls `fn` each `ms` milliseconds until the returned function is called or the command ends. */
  readonly every?: (ms: number, fn: () => void) => () => void
  /** Remembers how a folder is; the returned function tells what changed since. */
  readonly watchFolder?: (root: string) => Promise<() => Promise<FolderChanges>>
}
