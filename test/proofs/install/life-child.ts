// Run by life.ts: carries out one operation on a daemon with an extension and ends itself with SIGKILL at one of its calls of
// the kernel or of the disk.
import path from 'node:path'
import type { DropInsApi } from '../../../kernel/platform.js'
import type { PluginKernel } from '../../../kernel/plugin.js'
import { systemFiles } from '../../../plugins/delivery/installer/files.js'
import type { ProcessesApi } from '../../../plugins/platform/processes/api.js'
import { Daemon } from './demo-kit.js'
import { type Act, after, before, perform } from './life-operations.js'
import { Steps } from './steps.js'

const [home = '', operation = '', pids = '', at = '0'] = process.argv.slice(2)
const act = operation as Act
const steps = new Steps(Number(at))

/** A step before and behind all that a plugin has the kernel do. */
const stepped = (kernel: PluginKernel): PluginKernel => {
  const { processes, dropIns } = kernel.needs as unknown as { processes: ProcessesApi; dropIns?: DropInsApi }
  return {
    ...kernel,
    db: steps.around(kernel.db, ['tx']),
    needs: {
      ...kernel.needs,
      ...(dropIns && { dropIns: steps.around(dropIns, ['put', 'remove', 'purge']) }),
      processes: steps.around(processes, ['spawn']),
    } as never,
  }
}

Object.assign(systemFiles, steps.files({ ...systemFiles }.rename))
const daemon = await Daemon.start(home, stepped)
await daemon.until(before[act], async () => (await daemon.state()) === before[act])
// Only the operation is of interest, not the start before it.
steps.begin()
await perform(daemon, act, path.join(home, 'extensions'), pids)
await daemon.until(after[act], async () => (await daemon.state()) === after[act])
console.log(steps.count)
await daemon.close()
