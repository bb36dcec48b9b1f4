import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRegularFile } from '../../kernel/kit/read-file.js'
import type { Io } from '../io.js'

const usual = 'vi'
const mostBytes = 1024 * 1024

/** Edits a text in the caller's editor; undefined when the editor failed or could not be started. */
export async function composeText(
  text: string,
  { env, onInterrupt }: Pick<Io, 'env' | 'onInterrupt'>,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-prompt-'))
  let isOpen = true
  let giveBack: (() => void) | undefined
  // Every Ctrl-C goes to the editor.
  const swallow = () => {
    if (isOpen) giveBack = onInterrupt?.(swallow)
  }
  swallow()
  try {
    const file = join(folder, 'prompt.md')
    await writeFile(file, text, { mode: 0o600 })
    const editor = env.VISUAL || env.EDITOR || usual
    // As in git: the variable is a command line of the caller, and the file is a separate argument.
    const child = spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, file], { stdio: 'inherit', env })
    const code = await new Promise<number | null>(resolve => {
      child.once('error', () => resolve(null))
      child.once('close', resolve)
    })
    if (code !== 0) return undefined
    const bytes = await readRegularFile(file, { maxBytes: mostBytes })
    return bytes?.toString('utf8').replace(/\n$/, '')
  } finally {
    isOpen = false
    giveBack?.()
    await rm(folder, { recursive: true, force: true })
  }
}
