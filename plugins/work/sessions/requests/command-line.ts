import { stat } from 'node:fs/promises'
import path from 'node:path'
import { shellWord } from '../../../../kernel/kit/commands/command-line.js'
import type { CreateTerminalParams } from '../acp/schemas.js'
import type { WantedAction } from './permission-rules.js'

/** What a name of a program does not hold and a command line for a shell does. */
const SHELL_SYNTAX = /[\s;&|<>()$`'"*?~#]/

/**
 * The argument list of a terminal. Some agents send what they would type into a shell as `command`, without `args`: such a
 * line is given to a shell, unless a program of that very name exists. Whether it may run is judged before, by the line.
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

/** What a terminal is about to run, as a person is asked: with the variables it sets, and the folder where that is another one. */
export function terminalAction(
  argv: readonly string[],
  env: readonly { readonly name: string; readonly value: string }[],
  folder: string | undefined,
): WantedAction {
  const command = argv.join(' ')
  const set = env.map(({ name, value }) => `${name}=${shellWord(value)} `).join('')
  // A single word may be a line for a shell, which runs as it is written.
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
