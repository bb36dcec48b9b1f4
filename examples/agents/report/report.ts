import type { Commit, GitHistory } from './git-log.js'
import type { FoundFile, Inspection, LanguageTotal, Note } from './inspect.js'

/**
 * Renders the report as Markdown. Pure and free of clocks and locales: the same tree and history give the same bytes.
 * Everything that comes out of the workspace is escaped, so that a file name or a comment cannot become markup.
 */
export function renderReport(inspection: Inspection, history: GitHistory): string {
  const { languages, otherFiles, noteCount, notes, largest } = inspection
  return `${[
    ['# Workspace report'],
    overview(inspection),
    ['## Languages'],
    languages.length === 0 ? ['No file of a known language.'] : languageTable(languages),
    ...(otherFiles > 0 ? [[`Files of no known language: ${otherFiles}.`]] : []),
    ['## TODO and FIXME'],
    notes.length === 0 ? ['None found.'] : notes.map(noteLine),
    ...(noteCount > notes.length ? [[`And ${noteCount - notes.length} more.`]] : []),
    ['## Largest files'],
    largest.length === 0 ? ['None.'] : largest.map(sizeLine),
    ['## Last commits'],
    historyLines(history),
  ]
    .map(block => block.join('\n'))
    .join('\n\n')}\n`
}

/** The one-line result of a turn. */
export function renderSummary({ files, languages, noteCount }: Inspection): string {
  const top = languages[0]?.name
  return `${plural(files, 'file')}, ${top ? `top language ${top}` : 'no known language'}, ${renderNoteCount(noteCount)}.`
}

export function renderNoteCount(noteCount: number): string {
  return plural(noteCount, 'TODO or FIXME note')
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function overview({ files, directories, bytes, read, lines, noteCount, unlisted, truncated }: Inspection): string[] {
  return [
    `- Files: ${files} in ${plural(directories, 'directory', 'directories')}, ${plural(bytes, 'byte')}`,
    `- Read: ${plural(read, 'file')}, ${plural(lines, 'line')}${read < files ? '; the others are counted by size only' : ''}`,
    `- TODO and FIXME notes: ${noteCount}`,
    ...(truncated ? ['- There are more files than this report covers.'] : []),
    ...(unlisted.length > 0 ? [`- Not looked into: ${unlisted.slice(0, 20).map(code).join(', ')}`] : []),
    ...(unlisted.length > 20 ? [`- And ${unlisted.length - 20} more directories.`] : []),
  ]
}

function languageTable(languages: readonly LanguageTotal[]): string[] {
  const rows = languages.map(({ name, files, lines, unread }) => {
    return `| ${name} | ${files} | ${lines}${unread > 0 ? ` (${unread} not read)` : ''} |`
  })
  return ['| Language | Files | Lines |', '| --- | ---: | ---: |', ...rows]
}

function noteLine({ path, line, text: note }: Note): string {
  return `- ${code(`${path}:${line}`)} ${text(note)}`
}

function sizeLine({ path, size }: FoundFile): string {
  return `- ${code(path)} ${plural(size, 'byte')}`
}

function historyLines(history: GitHistory): string[] {
  switch (history.kind) {
    case 'commits':
      return history.commits.length === 0 ? ['None.'] : history.commits.map(commitLine)
    case 'no_repository':
      return ['Not included: this folder is in no git repository.']
    case 'no_terminal':
      return ['Not included: the client offers no terminal to run git in.']
    case 'not_permitted':
      return ['Not included: reading the git history was not permitted.']
    case 'failed':
      return history.exitCode === undefined
        ? ['Not included: git could not be run.']
        : [`Not included: git ended with exit code ${history.exitCode}; is this a repository with commits?`]
  }
}

function commitLine({ hash, date, author, subject, files }: Commit): string {
  return `- ${code(hash)} ${date} ${text(author)}: ${text(subject)} (${plural(files, 'file')})`
}

/** Plain text inside a line of Markdown. */
function text(value: string): string {
  return visible(value).replace(/[\\`*_[\]<>&~]/g, '\\$&')
}

/** A code span whose fence is longer than any run of backticks inside it. */
function code(value: string): string {
  const content = visible(value)
  const longest = Math.max(0, ...Array.from(content.matchAll(/`+/g), run => run[0].length))
  const fence = '`'.repeat(longest + 1)
  return longest === 0 ? `${fence}${content}${fence}` : `${fence} ${content} ${fence}`
}

/** Without control characters and marks that reorder text: neither may reach a terminal or mislead a reader. */
function visible(value: string): string {
  return value.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ')
}
