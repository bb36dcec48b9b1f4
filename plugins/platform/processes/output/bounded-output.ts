import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { type Rate, TokenBucket } from '../../../../kernel/kit/rate.js'
import { type Clock, onBehalfOf, systemClock, type Timer } from '../../../../kernel/plugin.js'

const MIB = 2 ** 20

/** Bounds of one output stream of a process, in bytes. */
export interface OutputLimits {
  /** How fast it is read: beyond that the pipe fills and the process waits. */
  readonly read: Rate
  /** What it may bring: beyond that it floods, and the process is ended. */
  readonly tolerated: Rate
}

/**
 * Reading 16 MiB a second takes a few percent of the event loop, and a small burst keeps one turn of it short. A process that
 * always has that much to say is ended after some twenty seconds; one that prints a large file is not.
 */
export const OUTPUT_LIMITS: OutputLimits = {
  read: { burst: 4 * MIB, perSecond: 16 * MIB },
  tolerated: { burst: 256 * MIB, perSecond: 4 * MIB },
}

/** What a stream is told of: `held` once, when it is first read no faster; `flooded` when it is over. */
export type OutputVerdict = 'held' | 'flooded'

/**
 * A stream of bytes that is not of a process, within the bounds of one: a server elsewhere is read no faster, and no longer when it
 * floods.
 * @param flooded called before the stream fails with an Error that names the limit
 */
export function boundedStream(source: Readable, owner: string, flooded: () => void): Readable {
  const tell = (verdict: OutputVerdict) => {
    if (verdict === 'flooded') flooded()
  }
  return pipeline(source, new BoundedOutput(owner, OUTPUT_LIMITS, tell), () => {})
}

/** An output stream as it is handed on: no faster than its limits, and destroyed with an Error when they do not help. */
export class BoundedOutput extends Transform {
  readonly #clock: Clock = systemClock()
  readonly #read: TokenBucket
  readonly #tolerated: TokenBucket
  #held = false
  #pause: Timer | undefined

  /** @param owner for whom what comes is handled */
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
      const text = `it floods: more than ${tolerated.burst / MIB} MiB, ${read.perSecond / MIB} MiB a second and no end`
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
    if (!this.#held)
      this.tell('held', `it prints faster than ${read.perSecond / MIB} MiB a second: it is read no faster`)
    this.#held = true
    this.#pause = this.#clock.timeout(waitMs, () => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#pause?.cancel()
    done(error)
  }
}
