import type { CommandContext, CommandOutput } from '../../../../kernel/plugin.js'

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

/** A terminal on which a stream goes on above the line that is typed. */
export interface TaskScreen {
  /** Says that something goes on; `more` tells what is known of it. Undefined: nothing goes on. */
  working(more: (() => string) | undefined): void
  /** Opens the line that is typed; the returned function closes it. */
  edit(options: {
    readonly prompt: string
    readonly history?: readonly string[]
    readonly take: (line: string | undefined) => void
  }): () => void
  /** Another text before what is typed. */
  ask(prompt: string): void
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
  }
  readonly screen?: TaskScreen
  /** Renders Markdown for a terminal; absent where the text is to stay as it is. */
  readonly markdown?: () => Prose
  /** Lines of at most `width` columns, broken between words. */
  readonly wrap?: (text: string, width: number) => string[]
  /** Calls `fn` each `ms` milliseconds until the returned function is called or the command ends. */
  readonly every?: (ms: number, fn: () => void) => () => void
  /** Remembers how a folder is; the returned function tells what changed since. */
  readonly watchFolder?: (root: string) => Promise<() => Promise<FolderChanges>>
}
