import { relative } from 'node:path'
import { clip } from '../text.js'
import { filesBelow, globSource, linesMatching, Matcher } from '../workspace/search.js'
import {
  flag,
  object,
  optionalText,
  optionalWhole,
  shownMember,
  type Tool,
  type ToolContext,
  text,
  textIn,
  whole,
} from './tool.js'

const MAX_LINES = 2000
const MAX_FOUND = 200
const MAX_LISTED = 500

/** `read`: lines of a file. Only files that were read may be edited. */
export const read: Tool = {
  name: 'read',
  description: `Read a text file of the workspace, at most ${MAX_LINES} lines at once. A file has to be read before it is edited.`,
  kind: 'read',
  parameters: object(
    { path: text('relative to the workspace'), offset: whole('first line, from 1'), limit: whole('lines') },
    ['path'],
  ),
  title: input => `Read ${shownMember(input, 'path')}`,
  async run(input, { files, maxOutput, show }) {
    const file = await files.resolve(input.path)
    const offset = optionalWhole(input, 'offset', Number.MAX_SAFE_INTEGER) ?? 1
    const limit = optionalWhole(input, 'limit', MAX_LINES) ?? MAX_LINES
    await show({ locations: [{ path: file, ...(offset > 1 && { line: offset }) }] })
    const lines = (await files.text(file)).split('\n')
    if (lines.at(-1) === '') lines.pop()
    if (lines.length === 0) return { text: `${files.shown(file)} is empty` }
    if (offset > lines.length) return { text: `${files.shown(file)} has only ${lines.length} lines`, failed: true }
    let end = offset - 1
    let size = 0
    while (end < lines.length && end < offset - 1 + limit) {
      size += (lines[end]?.length ?? 0) + 1
      if (size > maxOutput && end > offset - 1) break
      end++
    }
    const part = clip(lines.slice(offset - 1, end).join('\n'), maxOutput)
    if (offset === 1 && end === lines.length) return { text: part }
    return { text: `${part}\n[lines ${offset} to ${end} of ${lines.length}; go on with offset ${end + 1}]` }
  },
}

/** `grep`: lines that match a regular expression. */
export const grep: Tool = {
  name: 'grep',
  description: 'Find lines by a regular expression in the text files of the workspace.',
  kind: 'search',
  parameters: object(
    {
      pattern: text('a JavaScript regular expression'),
      path: text('a file or folder; default: the workspace'),
      glob: text('only files whose path matches, for example *.ts'),
      ignore_case: flag('ignore case'),
    },
    ['pattern'],
  ),
  title: input => `Search for ${shownMember(input, 'pattern')}`,
  async run(input, context) {
    const { files, signal, maxOutput } = context
    const matcher = new Matcher(textIn(input, 'pattern'), input.ignore_case === true)
    const { paths, isCut } = await chosenFiles(optionalText(input, 'path') ?? '.', optionalText(input, 'glob'), context)
    const found: string[] = []
    let size = 0
    for (const path of paths) {
      signal.throwIfAborted()
      for (const { line, text } of await linesMatching(path, matcher)) {
        // The client controls access to file contents, also for search results.
        if (found.length === 0) await files.mayRead(path)
        const row = `${files.shown(path)}:${line}: ${clip(text, 300)}`
        size += row.length + 1
        if (found.length >= MAX_FOUND || size > maxOutput) {
          return { text: `${found.join('\n')}\n[there are more; use a more specific search]` }
        }
        found.push(row)
      }
    }
    const cut = isCut ? '\n[the workspace has more files than were searched; name a folder]' : ''
    return { text: found.length > 0 ? found.join('\n') + cut : `nothing matches${cut}` }
  },
}

/** `glob`: files by their path. */
export const glob: Tool = {
  name: 'glob',
  description: 'List files of the workspace by their path, ** for all of them.',
  kind: 'search',
  parameters: object({ pattern: text('for example src/**/*.ts'), path: text('a folder; default: the workspace') }, [
    'pattern',
  ]),
  title: input => `List ${shownMember(input, 'pattern')}`,
  async run(input, context) {
    const { paths, isCut } = await chosenFiles(optionalText(input, 'path') ?? '.', textIn(input, 'pattern'), context)
    const shown = paths.slice(0, MAX_LISTED).map(path => context.files.shown(path))
    const more = isCut || paths.length > shown.length ? '\n[there are more; name a folder]' : ''
    const list = clip(shown.join('\n'), context.maxOutput)
    return { text: list === '' ? `no file matches${more}` : list + more }
  },
}

async function chosenFiles(where: string, pattern: string | undefined, { files, signal }: ToolContext) {
  const target = await files.resolve(where)
  const below = await filesBelow(target, signal)
  // The path may be a file instead of a folder.
  const all = below.files.length === 0 && !below.isCut && (await files.exists(target)) ? [target] : below.files
  if (pattern === undefined) return { paths: all, isCut: below.isCut }
  const matching = new Matcher(globSource(pattern))
  const chosen = await matching.indexes(all.map(path => relative(target, path) || files.shown(path)))
  return { paths: chosen.flatMap(at => all[at] ?? []), isCut: below.isCut }
}
