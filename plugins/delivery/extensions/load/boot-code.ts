import { registry } from '../../../../kernel/plugin.js'
import type { Code } from './in-process.js'
import type { LogRing } from './log-ring.js'

/** Code of an extension that the boot started or tried to start. */
export interface BootCode extends Required<Omit<Code, 'waits' | 'former'>> {
  readonly name: string
  /** Key of the extension: the installed one, or a link. */
  readonly key: string
  /** The extension's log, which also receives the log of its code. */
  readonly log: LogRing
}

/** Passes the code that a boot started to the extensions plugin. */
export const BootCodes = registry<BootCode>('extensions.begun@1')
