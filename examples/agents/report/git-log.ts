import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The command the agent asks to run: an argument list, never a shell string. */
export interface Command {
  readonly command: string
  readonly args: readonly string[]
}

export interface Commit {
  /** The first ten digits: a fixed length, where git's own abbreviation grows with the repository. */
  readonly hash: string
  /** Day of the author's date, `YYYY-MM-DD`. */
  readonly date: string
  readonly author: string
  readonly subject: string
  readonly files: number
}

/** What is known of the git history, or why nothing is. */
export type GitHistory =
  | { readonly kind: 'commits'; readonly commits: readonly Commit[] }
  | { readonly kind: 'no_repository' }
  | { readonly kind: 'no_terminal' }
  | { readonly kind: 'not_permitted' }
  | { readonly kind: 'failed'; readonly exitCode: number | undefined }

/** Whether a folder is in a git repository. GIT_DIR can name one anywhere. */
export function isInRepository(folder: string): boolean {
  if (process.env.GIT_DIR || existsSync(join(folder, '.git'))) return true
  const parent = dirname(folder)
  return parent !== folder && isInRepository(parent)
}

/**
 * The last ten commits that touched the workspace. The options pin what a user's or a repository's configuration could
 * change: pager, colours, signatures (which would start another program), renames.
 */
export const GIT_LOG: Command = {
  command: 'git',
  args: [
    '--no-pager',
    'log',
    '-n',
    '10',
    '--no-color',
    '--no-show-signature',
    '--no-renames',
    '--shortstat',
    '--format=%H%x09%as%x09%an%x09%s',
    '--',
    '.',
  ],
}

/** Reads the output of `GIT_LOG`. A terminal may end lines with CR LF and may have cut off the start of the output. */
export function parseGitLog(output: string): Commit[] {
  const commits: Commit[] = []
  for (const line of output.split(/\r?\n/)) {
    const [, hash, date, author, subject] = /^([0-9a-f]{40,64})\t([\d-]*)\t([^\t]*)\t(.*)$/.exec(line) ?? []
    if (hash !== undefined) {
      commits.push({ hash: hash.slice(0, 10), date: date!, author: author!, subject: subject!, files: 0 })
      continue
    }
    const files = /^ (\d+) files? changed/.exec(line)?.[1]
    const last = commits.at(-1)
    if (files !== undefined && last) commits[commits.length - 1] = { ...last, files: Number(files) }
  }
  return commits
}
