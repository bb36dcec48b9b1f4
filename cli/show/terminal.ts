import type { Readable } from 'node:stream'
import type { CommandTerminal } from '../../kernel/contract/command.js'

/** The terminal's own line editing: it works everywhere, and nothing has to be put back when the command is killed. */
export function terminalOf(input: Readable): CommandTerminal {
  return {
    now: () => performance.now(),
    onLine(take) {
      let rest = ''
      const more = (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) take(line)
      }
      const end = () => take(undefined)
      input.setEncoding('utf8').on('data', more).on('end', end)
      return () => {
        input.off('data', more).off('end', end)
        input.pause()
      }
    },
  }
}
