/** `svc/testing`: test helpers for authors of plugins and extensions. */

import { type DaemonOptions, StartedDaemon } from './daemon.js'
import { StartedExtension, type StartOptions } from './extension.js'
import { extensionContract } from './suite.js'

export { answersAlike, type Behaviour, behaviours } from './behaviour.js'
export { answersInTime, commandsLoad, describesItself, leavesNothing, type Subject } from './contract.js'
export { type DaemonOptions, type Ran, StartedDaemon } from './daemon.js'
export { type Reply, StartedExtension, type StartOptions } from './extension.js'
export { replacementProblems, shippedProblems } from './judge.js'
export { seededIds } from './seeded-ids.js'
export { EventReader, type ServerEvent, type StreamOptions } from './stream.js'
export { WaitingTime } from './time.js'
export { probe, resources, settled, type Traces, tracesOf } from './traces.js'
export { VirtualClock } from './virtual-clock.js'
export { extensionContract }

/**
 * Starts the extension of a folder in a kernel of its own; close it at the end. @throws Error with the reason when it does not run
 */
export function startExtension(folder: string, options?: StartOptions): Promise<StartedExtension> {
  return StartedExtension.start(folder, options)
}

/** Starts a daemon in a process of its own; stop it at the end. @throws Error with its output when it does not start */
export function startDaemon(options?: DaemonOptions): Promise<StartedDaemon> {
  return StartedDaemon.start(options)
}
