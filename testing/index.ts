/** `svc/testing`: what authors of plugins and extensions test with. */

import { StartedExtension, type StartOptions } from './extension.js'
import { extensionContract } from './suite.js'

export { answersInTime, describesItself, leavesNothing, type Subject } from './contract.js'
export { type Reply, StartedExtension, type StartOptions } from './extension.js'
export { shippedProblems } from './judge.js'
export { probe, resources, settled, type Traces, tracesOf } from './look.js'
export { WaitingTime } from './time.js'
export { extensionContract }

/** Starts the extension of a folder in a kernel of its own; close it at the end. @throws Error, saying why it does not run */
export function startExtension(folder: string, options?: StartOptions): Promise<StartedExtension> {
  return StartedExtension.start(folder, options)
}
