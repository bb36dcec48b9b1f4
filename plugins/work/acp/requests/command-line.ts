import { stat } from 'node:fs/promises'
import path from 'node:path'
import { shellWord } from '../../../../kernel/kit/commands/command-line.js'
import type { CreateTerminalParams } from '../protocol/schemas.js'
import type { WantedAction } from './permission-rules.js'

/** Characters that occur in shell command lines but not in program names. */
const SHELL_SYNTAX = /[\s;&|<>()$`'"*?~#]/

/**
 * The argument list of a terminal. Some agents send a shell command line as `command`, without `args`: it is passed to a shell,
 * unless a program of that exact name exists. The permission check happens before, on the line itself.
 */
export async function terminalArgv(
  { command, args }: Pick<CreateTerminalParams, 'command' | 'args'>,
  cwd: string,
): Promise<readonly string[]> {
  if ((args ?? []).length > 0) return [command, ...args!]
  if (!SHELL_SYNTAX.test(command) || (await isFile(path.resolve(cwd, command)))) return [command]
  return ['/bin/sh', '-c', command]
}

const isFile = (file: string) =>
  stat(file).then(
    found => found.isFile(),
    () => false,
  )

/** The command of a terminal in the form of a question, with its variables, and its folder if that is not the default. */
export function terminalAction(
  argv: readonly string[],
  env: readonly { readonly name: string; readonly value: string }[],
  folder: string | undefined,
): WantedAction {
  const command = argv.join(' ')
  const set = env.map(({ name, value }) => `${name}=${shellWord(value)} `).join('')
  // A single word may be a shell command line, which is shown as it is.
  const words = argv.length === 1 ? command : argv.map(shellWord).join(' ')
  return {
    kind: 'execute',
    title: command,
    command,
    argv,
    shown: set + words,
    paths: folder === undefined ? [] : [folder],
    diffs: [],
  }
}
