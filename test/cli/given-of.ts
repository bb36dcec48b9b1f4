import type { Entry } from '../../cli/commands/find-command.js'
import type { Given } from '../../cli/commands/given.js'
import { parseCommand } from '../../cli/commands/parse-command.js'

/** What a command is carried out with when these words stand behind its path. */
export async function givenOf(entry: Entry, rest: readonly string[]): Promise<Given> {
  const calls: Given[] = []
  const carryOut = async (_: Entry, given: Given) => {
    calls.push(given)
    return 0
  }
  await (await parseCommand(entry, rest, { carryOut })).validateAndExecute()
  return calls[0] as Given
}
