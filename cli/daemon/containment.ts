import { locationInCopy } from '../../plugins/delivery/extensions/load/copy-path.js'
import type { DaemonLine } from './daemon-log.js'

/** Exit code of an uncaught exception (EX_SOFTWARE). */
const exitBroken = 70

/** Attributes a failure at a code location to a plugin. */
export type Blame = (owner: string, where: string, error: unknown) => void

/** Logs uncaught errors of plugins under the name of the plugin; an uncaught error of the daemon itself ends it. */
export function containFailures(log: (line: DaemonLine) => void, blame: Blame): void {
  process.on('unhandledRejection', reason => {
    const { text, stack, owner } = describe(reason)
    log({ level: 'error', msg: `unhandled rejection: ${text}`, owner, stack })
    blame(owner, 'unhandled rejection', reason)
  })
  const exit = process.exit.bind(process)
  process.on('uncaughtException', error => {
    const { text, stack, owner, dropIn } = describe(error)
    log({ level: 'error', msg: `uncaught exception: ${text}`, owner, stack })
    if (!dropIn) exit(exitBroken)
    blame(owner, 'uncaught exception', error)
  })
  process.exit = () => {
    throw new Error('a plugin must not call process.exit; to stop the daemon: svc daemon stop')
  }
}

function describe(thrown: unknown): { text: string; stack: string; owner: string; dropIn: boolean } {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const stack = error.stack ?? ''
  const extension = locationInCopy(stack)?.name
  const plugin = /plugins\/[a-z]+\/([a-z-]+)\//.exec(stack)?.[1]
  return { text: error.message, stack, owner: extension ?? plugin ?? 'unknown', dropIn: extension !== undefined }
}
