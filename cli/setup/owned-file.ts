import { mkdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { replaceDurably } from '../../kernel/kit/durable-file.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { CliFault, exitCodes } from '../fault.js'

const MAX_BYTES = 4 * 1024 * 1024

/** An actual or planned change of a file of the user. */
export interface FileChange {
  readonly path: string
  /** Its new text; undefined: the file is removed. */
  readonly text: string | undefined
  readonly change: 'written' | 'removed' | 'unchanged'
}

export const textAt = (path: string): string | undefined =>
  readRegularFileSync(path, { maxBytes: MAX_BYTES })?.toString()

/**
 * A file that belongs to this program as a whole, identified by a mark in it.
 * @param text undefined to remove it
 * @throws CliFault `file_foreign` for a file of another program
 */
export function ownFile(path: string, mark: string, text: string | undefined, force: boolean): FileChange {
  const before = textAt(path)
  if (before !== undefined && before !== text && !before.includes(mark) && !force) {
    throw new CliFault('file_foreign', `${path} was not written by svc; nothing was changed`, {
      exit: exitCodes.conflict,
      next: `less ${path}`,
    })
  }
  return { path, text, change: before === text ? 'unchanged' : text === undefined ? 'removed' : 'written' }
}

/**
 * Lines between two marks in a file of the user, such as `.bashrc`; the rest of it stays.
 * @param lines undefined to remove them
 */
export function ownLines(path: string, name: string, lines: string | undefined): FileChange {
  const [begin, end] = [`# >>> ${name} >>>`, `# <<< ${name} <<<`]
  const before = textAt(path) ?? ''
  const block = new RegExp(`^${begin}\\n[\\s\\S]*?^${end}(?:\\n|$(?![\\s\\S]))`, 'm')
  const rest = before.replace(block, '')
  const apart = rest === '' || rest.endsWith('\n') ? '' : '\n'
  const text = lines === undefined ? rest : `${rest}${apart}${begin}\n${lines}\n${end}\n`
  const isSame = text === before || (lines !== undefined && block.exec(before)?.[0].includes(`\n${lines}\n`) === true)
  return { path, text: isSame ? before : text, change: isSame ? 'unchanged' : 'written' }
}

/** Applies changes. A symlink is kept: its target is replaced, with the same mode. */
export async function carryOut(changes: readonly FileChange[]): Promise<void> {
  for (const { path, text, change } of changes) {
    if (change === 'unchanged') continue
    if (text === undefined) {
      rmSync(path, { force: true })
      continue
    }
    mkdirSync(dirname(path), { recursive: true })
    const target = statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path
    const mode = (statSync(target, { throwIfNoEntry: false })?.mode ?? 0o644) & 0o777
    await replaceDurably(target, Buffer.from(text), { mode })
  }
}
