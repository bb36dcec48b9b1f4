import path from 'node:path'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { faultOf, messageOf, type PluginKernel, within } from '../../../../kernel/plugin.js'
import { keep, OutputStart, type ProcessesApi } from '../../../platform/processes/api.js'
import { filesOf } from './code.js'

/** The folder that code runs in, and the author's folder. */
export interface Where {
  /** Folder of the copy. */
  readonly folder: string
  readonly root: string
}

/** Files that are checked for a syntax error, and the milliseconds for each of them. */
const MAX_CHECKED = 50
const CHECK_MS = 5000
const MAX_SAID = 64 * 1024

/** Dependencies of a syntax check in a separate process. */
export interface Checker extends Pick<PluginKernel, 'clock'>, Pick<ProcessesApi, 'spawn'> {}

/** The message of an error with the extension's file and line from the stack, if known. */
export function placed(error: unknown, { folder, root }: Where): string {
  const text = messageOf(error).replaceAll(folder, root)
  const stack = faultOf(error).code === 'internal' && error instanceof Error ? (error.stack ?? '') : ''
  for (const [, url = '', line] of stack.matchAll(/(file:\/\/[^\s)]+?):(\d+)/g)) {
    const file = pathOf(url)
    if (file?.startsWith(folder + path.sep)) return `${path.join(root, path.relative(folder, file))}:${line}: ${text}`
  }
  return text
}

/**
 * File and line of a syntax error. The error of an import does not contain them, so each file is checked by a separate
 * process. Undefined if none is found.
 */
export async function syntaxErrorIn(kernel: Checker, { folder, root }: Where): Promise<string | undefined> {
  const files = (await filesOf(folder)).filter(({ relative }) => /\.[cm]?js$/.test(relative))
  const own = files.filter(({ relative }) => !relative.split('/').includes('node_modules'))
  for (const { relative, absolute } of own.slice(0, MAX_CHECKED)) {
    const said = await parse(kernel, folder, absolute)
    const [, line] = /^.*:(\d+)$/m.exec(said) ?? []
    const [, what] = /^(\w*Error: .*)$/m.exec(said) ?? []
    if (what !== undefined) return `${path.join(root, relative)}:${line ?? 1}: ${what}`
  }
  return undefined
}

/** The output of `node --check` for a file. */
async function parse({ spawn, clock }: Checker, cwd: string, file: string): Promise<string> {
  const argv = [process.execPath, '--check', file]
  const child = await spawn({ label: 'check of code', argv, cwd, env: {}, stdio: 'pipe' })
  child.stdin.end()
  child.stdout.resume()
  const said = keep(child.stderr, new OutputStart(MAX_SAID))
  // A process may exit before its last output was read.
  await within(clock, CHECK_MS, Promise.all([child.exited, finished(child.stderr)])).catch(() => {})
  await child.stop({ graceMs: 0 })
  return said.text()
}

function pathOf(url: string): string | undefined {
  try {
    return fileURLToPath(url)
  } catch {
    return undefined
  }
}
