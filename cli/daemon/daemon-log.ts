import type { LogLine, LogPort } from '../../kernel/index.js'
import { isDropIn } from '../../kernel/platform.js'
import type { Redact } from '../../kernel/plugin.js'
import type { LogFile } from './log-file.js'
import { LogLimit } from './log-limit.js'
import { redact } from './redact.js'

/** A line of the program itself. */
export type DaemonLine = Pick<LogLine, 'level' | 'msg'> & { readonly [field: string]: unknown }

/** The daemon's log. A line is written at once. Pino gets nothing that is not redacted: no text, field or binding. */
export interface DaemonLog {
  (line: DaemonLine): void
  /** What the kernel and its plugins write to, each plugin to a child. Their level does not hold for the program's own lines. */
  readonly port: LogPort
  /** From now on the values that plugins register are hidden in the program's own lines too. */
  redactBy(known: Redact): void
}

/** The log of a daemon; in the foreground it goes to standard output as well. */
export async function openDaemonLog(
  file: LogFile,
  foreground: boolean,
  clock = { monotonic: () => performance.now() },
): Promise<DaemonLog> {
  const { default: pino } = await import('pino')
  if (foreground) process.stdout.on('error', () => {})
  const write = (text: string): void => {
    file.write(text)
    if (foreground) process.stdout.write(text)
  }
  const options = {
    base: null,
    level: 'debug',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  }
  const port = redacting(pino(options, { write }), new LogLimit(clock))
  let known: Redact | undefined
  const log = ({ level, ...line }: DaemonLine) => {
    const { msg, ...fields } = known?.value(line) ?? line
    port[level](fields, msg)
  }
  const redactBy = (redact: Redact) => {
    known = redact
  }
  return Object.assign(log, { port, redactBy })
}

/** A logger and its children, each of which gets only what is redacted. */
function redacting(logger: LogPort, limit: LogLimit): LogPort {
  const at =
    (level: LogLine['level']): LogPort['info'] =>
    (fields, msg) =>
      logger[level](redact(fields) as typeof fields, String(redact(msg)))
  return {
    get level() {
      return logger.level
    },
    set level(level) {
      logger.level = level
    },
    child: bindings => {
      const child = redacting(logger.child(redact(bindings) as typeof bindings), limit)
      const { plugin = '' } = bindings
      return isDropIn(plugin) ? limit.of(plugin, child) : child
    },
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
}
