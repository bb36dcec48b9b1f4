import type { LogLine, LogPort } from '../../kernel/index.js'
import { isDropIn } from '../../kernel/platform.js'
import type { Redact } from '../../kernel/plugin.js'
import type { LogFile } from './log-file.js'
import { LogLimit } from './log-limit.js'
import { redact } from './redact.js'

/** A log line of the daemon program itself. */
export type DaemonLine = Pick<LogLine, 'level' | 'msg'> & { readonly [field: string]: unknown }

/** The daemon's log. Lines are written synchronously. All texts, fields and bindings are redacted before they reach Pino. */
export interface DaemonLog {
  (line: DaemonLine): void
  /** Log port of the kernel; each plugin gets a child. Its level does not apply to the program's own lines. */
  readonly port: LogPort
  /** Redacts the secret values of plugins in the program's own lines from now on. */
  redactBy(known: Redact): void
}

/** Opens the log of a daemon; in the foreground it is also written to standard output. */
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

/** A logger whose children get only redacted values. */
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
