import type { Entry } from '../../cli/commands/find-command.js'
import type { Invocation } from '../../cli/commands/invocation.js'
import { parseCommand } from '../../cli/commands/parse-command.js'

/** What a command is carried out with when these words stand behind its path. */
export async function invocationOf(entry: Entry, rest: readonly string[]): Promise<Invocation> {
  const calls: Invocation[] = []
  const carryOut = async (_: Entry, given: Invocation) => {
    calls.push(given)
    return 0
  }
  await (await parseCommand(entry, rest, { carryOut })).validateAndExecute()
  return calls[0] as Invocation
}
