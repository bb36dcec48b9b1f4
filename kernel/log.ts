import type { Clock, Scope } from './contract/basics.js'
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

/** The logger of a loaded plugin, made when it writes its first line. */
interface Child {
  readonly scope: Scope
  readonly plugin?: string
  readonly logger?: LogPort
}

/** The log of the kernel and of its plugins, each with a child of its own. */
export class KernelLog {
  /**
   * Undefined when nothing is logged. `own` writes the kernel's lines, and lines of plugins without a child, with the plugin as a
   * field.
   */
  readonly #to: { readonly port: LogPort; readonly own: LogPort } | undefined
  readonly #children = new Map<string, Child>()
  #levelNow: () => Level = () => 'info'

  constructor(
    to: LogSink | LogPort | undefined,
    clock: Pick<Clock, 'now'>,
    private readonly redact: Pick<Redact, 'value'>,
  ) {
    const port = typeof to === 'function' ? portOf(to, clock) : to
    this.#to = port && { port, own: port.child({}) }
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

  /** The log of a loaded plugin, with a child logger until its scope ends. */
  childOf(plugin: string, scope: Scope): Log {
    this.#children.set(plugin, { scope })
    scope.signal.addEventListener('abort', () => {
      if (this.#children.get(plugin)?.scope === scope) this.#children.delete(plugin)
    })
    return this.of(plugin)
  }

  #write(level: Level, name: string | undefined, text: string, fields: Readonly<Record<string, unknown>>): void {
    const levelNow = this.#levelNow()
    // Checked before redaction, which costs more.
    if (!this.#to || LEVELS.indexOf(level) < LEVELS.indexOf(levelNow)) return
    const bindings = name === undefined ? {} : this.redact.value({ plugin: name }, member => member === 'plugin')
    const { port, own } = this.#to
    const child = name === undefined ? undefined : this.#childFor(port, name, bindings)
    const logger = child ?? own
    if (logger.level !== levelNow) logger.level = levelNow
    const { level: _level, time: _time, plugin: _plugin, msg: _msg, ...more } = fields
    const { msg, ...clean } = this.redact.value({ ...more, msg: text })
    logger[level](child ? clean : { ...clean, ...bindings }, msg)
  }

  /** The child of a plugin, bound to its redacted name. It is replaced when the name has come to contain a secret. */
  #childFor(port: LogPort, name: string, bindings: { readonly plugin?: string }): LogPort | undefined {
    const child = this.#children.get(name)
    if (!child || (child.logger && child.plugin === bindings.plugin)) return child?.logger
    const logger = port.child(bindings)
    this.#children.set(name, { ...child, ...bindings, logger })
    return logger
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
