import type { Entry } from '../commands/find-command.js'
import type { Invocation } from '../commands/invocation.js'
import { CliFault, exitCodes } from '../fault.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'

// Commands that also work when the daemon cannot be reached.

interface World {
  readonly io: Io
  readonly out: Output
  readonly home: string
}

/** Sends the request to the daemon; resolves to the exit code. */
type Ask = () => Promise<number>

type Surely = (ask: Ask, entry: Entry, invocation: Invocation, world: World) => Promise<number>

/** An extension that blocks the daemon can be disabled for the next start. Disabling it for one workspace needs the daemon. */
const disableSurely: Surely = async (ask, _, invocation, { io, home, out }) => {
  const [name = ''] = Object.values(invocation.args).flat()
  try {
    return await ask()
  } catch (unreached) {
    const { disableLater, isUnreached } = await import('../daemon/disable-later.js')
    if (!isUnreached(unreached) || invocation.options.workspace !== undefined) throw unreached
    await disableLater({ home, name, out, signal: io.signal, unreached, ask: async () => void (await ask()) })
    return exitCodes.done
  }
}

/** Without a daemon, `doctor` runs the offline checks and exits like any other command. */
const doctorSurely: Surely = async (ask, entry, _, world) => {
  try {
    return await ask()
  } catch (error) {
    if (!isNoDaemon(error) || entry.kind !== 'route') throw error
    await (await import('../setup/offline-doctor.js')).doctorOffline(error, entry, world)
    return error.exit
  }
}

/** A setting that prevents the daemon from starting can be changed without it. */
const changeSurely: Surely = async (ask, entry, invocation, world) => {
  try {
    return await ask()
  } catch (error) {
    const { workspace, agent, target = 'global-config' } = invocation.options
    const isGlobal = workspace === undefined && agent === undefined && target === 'global-config'
    if (!isNoDaemon(error) || !isGlobal) throw error
    await (await import('../setup/offline-config.js')).changeConfig(entry.path, invocation, world)
    return exitCodes.done
  }
}

/** A file that keeps the daemon from starting can be checked without it. */
const checkSurely: Surely = async (ask, _, __, { io, home, out }) => {
  try {
    return await ask()
  } catch (error) {
    if (!isNoDaemon(error)) throw error
    return (await import('../setup/offline-config.js')).reportConfig({ io, home, out })
  }
}

const isNoDaemon = (error: unknown): error is CliFault => error instanceof CliFault && error.exit === exitCodes.noDaemon

/** Fallbacks for commands that have to work without a daemon, by command path. */
export const surely: Readonly<Record<string, Surely>> = {
  doctor: doctorSurely,
  'extension disable': disableSurely,
  'config check': checkSurely,
  'config set': changeSurely,
  'config unset': changeSurely,
}
