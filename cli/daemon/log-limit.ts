import type { LogLine, LogPort } from '../../kernel/index.js'
import { type Rate, TokenBucket } from '../../kernel/kit/rate.js'

type MonotonicClock = ConstructorParameters<typeof TokenBucket>[1]

/** Rate limit of an extension's characters in the daemon's log, which all plugins share. */
const RATE: Rate = { burst: 2 ** 20, perSecond: 2048 }
/** Fixed cost of a line besides its message and fields. */
const LINE_COST = 64

/** Prevents an extension from rotating the lines of others out of the log: excess output mutes it for a while. */
export class LogLimit {
  /** By extension, kept across reloads. */
  readonly #limits = new Map<string, { readonly bucket: TokenBucket; dropped: number }>()

  constructor(private readonly clock: MonotonicClock) {}

  /** The rate-limited logger of an extension. Muted lines are not even redacted. */
  of(extension: string, logger: LogPort): LogPort {
    const known = this.#limits.get(extension)
    const limit = known ?? { bucket: new TokenBucket(RATE, this.clock), dropped: 0 }
    this.#limits.set(extension, limit)
    const at =
      (level: LogLine['level']): LogPort['info'] =>
      (fields, msg) => {
        if (limit.dropped > 0) {
          if (limit.bucket.left < RATE.burst / 2) return void limit.dropped++
          logger.warn({ dropped: limit.dropped }, 'its lines are logged again')
          limit.dropped = 0
        }
        if (limit.bucket.tryTake(costOf(fields, msg))) return logger[level](fields, msg)
        limit.dropped = 1
        const rate = `${RATE.burst / 2 ** 20} MiB at once and ${RATE.perSecond / 1024} KiB a second`
        logger.warn(
          {},
          `it logs more than ${rate}: its lines are dropped until the rate falls. See svc extension logs ${extension}`,
        )
      }
    return {
      get level() {
        return logger.level
      },
      set level(level) {
        logger.level = level
      },
      child: bindings => logger.child(bindings),
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
    }
  }
}

/** Cost of a line. Fields that cannot be serialized cost the minimum. */
function costOf(fields: Readonly<Record<string, unknown>>, msg: string): number {
  let text = ''
  try {
    text = JSON.stringify(fields) ?? ''
  } catch {}
  return LINE_COST + text.length + msg.length
}
