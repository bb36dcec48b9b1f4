import type { LogLine, LogPort } from '../../kernel/index.js'
import { type Rate, TokenBucket } from '../../kernel/kit/rate.js'

type MonotonicClock = ConstructorParameters<typeof TokenBucket>[1]

/** Characters of lines that an extension writes to the log of the daemon, which all plugins share. */
const RATE: Rate = { burst: 2 ** 20, perSecond: 2048 }
/** Characters that a line costs beside its message and fields. */
const LINE_COST = 64

/** Keeps each extension from rotating the lines of all others out of the log: one that writes too much is muted for a while. */
export class LogLimit {
  /** By extension, over its reloads. */
  readonly #limits = new Map<string, { readonly bucket: TokenBucket; dropped: number }>()

  constructor(private readonly clock: MonotonicClock) {}

  /** The logger of an extension, held to the rate. While it is muted, its lines are not even redacted. */
  of(extension: string, logger: LogPort): LogPort {
    const known = this.#limits.get(extension)
    const limit = known ?? { bucket: new TokenBucket(RATE, this.clock), dropped: 0 }
    this.#limits.set(extension, limit)
    const at =
      (level: LogLine['level']): LogPort['info'] =>
      (fields, msg) => {
        if (limit.dropped > 0) {
          if (limit.bucket.left < RATE.burst / 2) return void limit.dropped++
          logger.warn({ dropped: limit.dropped }, 'its lines are written again')
          limit.dropped = 0
        }
        if (limit.bucket.tryTake(costOf(fields, msg))) return logger[level](fields, msg)
        limit.dropped = 1
        const rate = `${RATE.burst / 2 ** 20} MiB at once and ${RATE.perSecond / 1024} KiB a second`
        logger.warn(
          {},
          `it logs more than ${rate}: its lines are left out for a while. See svc extension logs ${extension}`,
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

/** Fields are plain data here; those that are none cost what a line costs. */
function costOf(fields: Readonly<Record<string, unknown>>, msg: string): number {
  let text = ''
  try {
    text = JSON.stringify(fields) ?? ''
  } catch {}
  return LINE_COST + text.length + msg.length
}
