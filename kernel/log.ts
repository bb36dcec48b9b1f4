import type { Clock } from './contract/basics.js'
import type { Log } from './contract/plugin-kernel.js'

/** One line of the log, as data; the embedder writes it where it wants. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly time: number
  readonly msg: string
  readonly plugin?: string
  readonly [field: string]: unknown
}

/** The log of one plugin. */
export function logFor(plugin: string, clock: Clock, write: (line: LogLine) => void): Log {
  const at =
    (level: LogLine['level']) =>
    (msg: string, fields: Readonly<Record<string, unknown>> = {}) =>
      write({ ...fields, level, time: clock.now(), msg, plugin })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
