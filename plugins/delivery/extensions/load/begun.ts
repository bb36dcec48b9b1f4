import { registry } from '../../../../kernel/plugin.js'
import type { Code } from './in-process.js'
import type { LogRing } from './log-ring.js'

/** Code of an extension that the boot started, or tried to. */
export interface BegunCode extends Required<Omit<Code, 'waits' | 'former'>> {
  readonly name: string
  /** Whose code it is: what is installed under that name, or one of the links to it. */
  readonly key: string
  /** Where what it logs goes as well: the log of that extension from now on. */
  readonly log: LogRing
}

/** Whoever reads extensions before a boot tells their host of it. */
export const BegunCodes = registry<BegunCode>('extensions.begun@1')
