import type { LogLine } from '../../kernel/index.js'
import type { LogFile } from './log-file.js'
import { redact } from './redact.js'

/** Writes a line of the daemon's log, at once; fields beside level and text are redacted. */
export type DaemonLog = (
  line: Pick<LogLine, 'level' | 'msg'> & { readonly time?: number; readonly [field: string]: unknown },
) => void

/** The log of a daemon; in the foreground it goes to standard output as well. */
export async function openDaemonLog(file: LogFile, foreground: boolean): Promise<DaemonLog> {
  const { default: pino } = await import('pino')
  if (foreground) process.stdout.on('error', () => {})
  const write = (text: string): void => {
    file.write(text)
    if (foreground) process.stdout.write(text)
  }
  const options = {
    base: null,
    level: 'debug',
    timestamp: false,
    formatters: { level: (level: string) => ({ level }) },
  }
  const logger = pino(options, { write })
  return ({ level, msg, time = Date.now(), ...fields }) => {
    logger[level]({ time: new Date(time).toISOString(), ...(redact(fields) as object) }, String(redact(msg)))
  }
}
