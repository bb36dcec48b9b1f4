import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { type Clock, onBehalfOf, systemClock, type Timer } from '../../../../kernel/plugin.js'

const MIB = 2 ** 20

/**
 * Reading 16 MiB a second takes a few percent of the event loop, and a small burst keeps each turn short. A process that sustains
 * that rate is killed after about twenty seconds; one that prints a large file is not.
 */
export const OUTPUT_LIMITS = {
  /** Maximum read rate: beyond it the pipe fills and the process waits. */
  read: { burst: 4 * MIB, perSecond: 16 * MIB },
  /** Tolerated total rate: beyond it the process floods and is killed. */
  tolerated: { burst: 256 * MIB, perSecond: 4 * MIB },
}
/** Bounds of one output stream of a process, in bytes. */
export type OutputLimits = Readonly<typeof OUTPUT_LIMITS>

/** `held`: reported once, when reads are first delayed; `flooded`: reported when the stream is ended. */
export type OutputVerdict = 'held' | 'flooded'

/**
 * A stream of bytes with the bounds of a process's output: a remote server is read no faster, and a flood ends the stream.
 * @param flooded called before the stream fails with an Error that names the limit
 */
export function boundedStream(source: Readable, owner: string, flooded: () => void): Readable {
  const tell = (verdict: OutputVerdict) => {
    if (verdict === 'flooded') flooded()
  }
  return pipeline(source, new BoundedOutput(owner, OUTPUT_LIMITS, tell), () => {})
}

/** An output stream that is read no faster than its limits, and destroyed with an Error when it floods. */
export class BoundedOutput extends Transform {
  readonly #clock: Clock = systemClock()
  readonly #read: TokenBucket
  readonly #tolerated: TokenBucket
  #held = false
  #pause: Timer | undefined

  /** @param owner to which the handling of the output is attributed */
  constructor(
    private readonly owner: string,
    private readonly limits: OutputLimits,
    private readonly tell: (verdict: OutputVerdict, text: string) => void,
  ) {
    super()
    this.#read = new TokenBucket(limits.read, this.#clock)
    this.#tolerated = new TokenBucket(limits.tolerated, this.#clock)
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { read, tolerated } = this.limits
    if (this.#tolerated.take(chunk.length) > 0) {
      const text = `it floods its output: more than ${tolerated.burst / MIB} MiB at a sustained ${read.perSecond / MIB} MiB/s`
      this.tell('flooded', `${text}; its process is ended`)
      done(new Error(text))
      return
    }
    onBehalfOf(this.owner, () => this.push(chunk))
    const waitMs = this.#read.take(chunk.length)
    if (waitMs === 0) {
      done()
      return
    }
    if (!this.#held) this.tell('held', `it prints faster than ${read.perSecond / MIB} MiB/s: its output is throttled`)
    this.#held = true
    this.#pause = this.#clock.timeout(waitMs, () => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#pause?.cancel()
    done(error)
  }
}
