import type { ToolCallContent } from '@agentclientprotocol/sdk/unstable'
import { headAndTail } from '../text.js'
import { MAX_FILE } from '../workspace/files.js'
import { isInGitFolder, Refused } from '../workspace/paths.js'
import { flag, object, optionalWhole, shownMember, type Tool, type ToolContext, text, textIn, whole } from './tool.js'

/** Characters of a file up to which a diff shows the whole file; beyond it only the passage. */
const MAX_DIFF = 100_000
const MAX_COMMAND = 8000
const DEFAULT_SECONDS = 120
const MAX_SECONDS = 600

/** `edit`: replaces one passage of a file that was read. */
export const edit: Tool = {
  name: 'edit',
  description:
    'Replace a passage of a file. old_text must match exactly, including spaces and line breaks, and occur only once; read the file first.',
  kind: 'edit',
  parameters: object(
    {
      path: text('relative to the workspace'),
      old_text: text('the current text of the passage'),
      new_text: text('the new text'),
      replace_all: flag('replace all occurrences'),
    },
    ['path', 'old_text', 'new_text'],
  ),
  title: input => `Edit ${shownMember(input, 'path')}`,
  async run(input, context) {
    const { files } = context
    const file = await placeToChange(input.path, context)
    const shown = files.shown(file)
    const before = await files.unchanged(file)
    const [oldText, newText] = asInFile(before, textIn(input, 'old_text'), textIn(input, 'new_text'))
    if (oldText === '') throw new Refused('old_text is empty; use write for a new file')
    if (oldText === newText) throw new Refused('old_text and new_text are the same: nothing would change')
    const times = before.split(oldText).length - 1
    if (times === 0)
      throw new Refused(`old_text is not in ${shown} as it is written; read the file again and copy it exactly`)
    if (times > 1 && input.replace_all !== true) {
      throw new Refused(
        `old_text is in ${shown} ${times} times; add lines around it until it is unique, or set replace_all`,
      )
    }
    const after = before.split(oldText).join(newText)
    const isSmall = Math.max(before.length, after.length) <= MAX_DIFF
    await change(file, after, isSmall ? diff(file, before, after) : diff(file, oldText, newText), context)
    return { text: `replaced ${times === 1 ? 'it' : `it ${times} times`} in ${shown}` }
  },
}

/** `write`: creates a file, or replaces a file that was read. */
export const write: Tool = {
  name: 'write',
  description:
    'Write a new file, or replace the whole content of a file that was read before. To change a part use edit.',
  kind: 'edit',
  parameters: object({ path: text('relative to the workspace'), content: text('the whole text of the file') }, [
    'path',
    'content',
  ]),
  title: input => `Write ${shownMember(input, 'path')}`,
  async run(input, context) {
    const { files } = context
    const file = await placeToChange(input.path, context)
    const content = textIn(input, 'content')
    if (Buffer.byteLength(content) > MAX_FILE) throw new Refused(`a file has at most ${MAX_FILE} bytes`)
    const isNew = !(await files.exists(file))
    const before = isNew ? null : await files.unchanged(file)
    if (before === content) throw new Refused(`${files.shown(file)} has exactly this text already`)
    const isSmall = Math.max(before?.length ?? 0, content.length) <= MAX_DIFF
    const [oldText, newText] = isSmall ? [before, content] : [before && '[large]', headAndTail(content, MAX_DIFF)]
    await change(file, content, diff(file, oldText, newText), context)
    return { text: `wrote ${Buffer.byteLength(content)} bytes to ${files.shown(file)}` }
  },
}

/** `run`: runs a shell command. */
export const run: Tool = {
  name: 'run',
  description: `Run a shell command in the workspace, for example its tests; at most ${MAX_SECONDS} s. It has no standard input.`,
  kind: 'execute',
  parameters: object(
    { command: text('run by /bin/sh'), timeout_seconds: whole(`default ${DEFAULT_SECONDS}, at most ${MAX_SECONDS}`) },
    ['command'],
  ),
  title: input => shownMember(input, 'command', 200),
  async run(input, context) {
    const line = textIn(input, 'command')
    if (line.trim() === '' || line.length > MAX_COMMAND || line.includes('\0')) {
      throw new Refused(`a command has 1 to ${MAX_COMMAND} characters`)
    }
    const seconds = optionalWhole(input, 'timeout_seconds', MAX_SECONDS) ?? DEFAULT_SECONDS
    await context.allowed(`run ${line}`)
    const { exitCode, output, isTimedOut } = await context.run(line, seconds * 1000)
    const end = isTimedOut
      ? `[killed after the timeout of ${seconds} s]`
      : exitCode === undefined
        ? '[ended by a signal]'
        : `[exit code ${exitCode}]`
    const said = headAndTail(output.trimEnd(), context.maxOutput)
    return { text: said === '' ? end : `${said}\n${end}`, failed: exitCode !== 0 }
  },
}

async function placeToChange(path: unknown, { files }: ToolContext): Promise<string> {
  const file = await files.resolve(path)
  if (isInGitFolder(files.roots, file)) throw new Refused('internal files of git cannot be written; use git commands')
  return file
}

async function change(file: string, after: string, content: ToolCallContent, context: ToolContext): Promise<void> {
  await context.show({ content: [content], locations: [{ path: file }] })
  await context.allowed(`edit ${file}`)
  // The file may have changed while the person considered the request.
  if (await context.files.exists(file)) await context.files.unchanged(file)
  await context.files.write(file, after)
}

const diff = (path: string, oldText: string | null, newText: string): ToolCallContent => ({
  type: 'diff',
  path,
  oldText,
  newText,
})

/** Models write \n even if the file has \r\n line ends. */
function asInFile(file: string, oldText: string, newText: string): readonly [string, string] {
  if (file.includes(oldText) || !file.includes('\r\n') || oldText.includes('\r')) return [oldText, newText]
  return [oldText.replaceAll('\n', '\r\n'), newText.replaceAll(/\r?\n/g, '\r\n')]
}
