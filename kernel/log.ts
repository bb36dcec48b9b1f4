import type { Clock } from './contract/basics.js'
import type { Log } from './contract/plugin-kernel.js'
import type { Redact } from './contract/redact.js'

/** Levels of lines, in ascending order of urgency. */
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LEVELS)[number]

/** A function for each level. */
const byLevel = <F>(make: (level: Level) => F) =>
  Object.fromEntries(LEVELS.map(level => [level, make(level)])) as Readonly<Record<Level, F>>

/** One line of the log, as data. */
export interface LogLine {
  readonly level: Level
  readonly time: number
  readonly msg: string
  readonly plugin?: string
  readonly [field: string]: unknown
}

/** Receives the lines of the log; the embedder writes them. */
export type LogSink = (line: LogLine) => void

/**
 * A logger of the embedder, such as one of pino. The kernel makes a child of it for each plugin, sets the level of the children and
 * drops a child when its plugin is unloaded. Children receive redacted data. The logger itself is not changed.
 */
export interface LogPort
  extends Readonly<Record<Level, (fields: Readonly<Record<string, unknown>>, msg: string) => void>> {
  /** Lines below it are not written. */
  level: string
  child(bindings: { readonly plugin?: string }): LogPort
}

/** The log of the kernel and of its plugins, each with a child of its own. */
export class KernelLog {
  /** Undefined when nothing is logged. */
  readonly #port: LogPort | undefined
  /** A child for each name as redacted, because a name may come to contain a secret; that of the kernel has none. */
  readonly #children = new Map<string | undefined, LogPort>()
  #levelNow: () => Level = () => 'info'

  constructor(
    to: LogSink | LogPort | undefined,
    clock: Pick<Clock, 'now'>,
    private readonly redact: Pick<Redact, 'value'>,
  ) {
    this.#port = typeof to === 'function' ? portOf(to, clock) : to
  }

  /** Sets the function that gives the level of every later line. */
  follow(levelNow: () => Level): void {
    this.#levelNow = levelNow
  }

  /** The log of a plugin, or of the kernel. */
  of(plugin?: string): Log {
    return byLevel(
      level =>
        (msg, fields = {}) =>
          this.#write(level, plugin, msg, fields),
    )
  }

  #write(level: Level, name: string | undefined, text: string, fields: Readonly<Record<string, unknown>>): void {
    const levelNow = this.#levelNow()
    // Checked before redaction, which costs more.
    if (!this.#port || LEVELS.indexOf(level) < LEVELS.indexOf(levelNow)) return
    const bindings = this.redact.value(name === undefined ? {} : { plugin: name }, member => member === 'plugin')
    const logger = this.#children.get(bindings.plugin) ?? this.#port.child(bindings)
    this.#children.set(bindings.plugin, logger)
    if (logger.level !== levelNow) logger.level = levelNow
    const { level: _level, time: _time, plugin: _plugin, msg: _msg, ...more } = fields
    const { msg, ...clean } = this.redact.value({ ...more, msg: text })
    logger[level](clean, msg)
  }
}

/** A sink as a logger: it gets each line as data. */
function portOf(sink: LogSink, clock: Pick<Clock, 'now'>, bound: { readonly plugin?: string } = {}): LogPort {
  return {
    level: 'info',
    child: bindings => portOf(sink, clock, { ...bound, ...bindings }),
    ...byLevel<LogPort[Level]>(level => (fields, msg) => sink({ ...fields, level, time: clock.now(), msg, ...bound })),
  }
}
