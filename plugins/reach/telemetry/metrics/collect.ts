import { isDropIn } from '../../../../kernel/platform.js'
import { messageOf, type PluginKernel, within } from '../../../../kernel/plugin.js'
import { type Distribution, type Labels, type Metric, Metrics, type Sample } from '../api.js'
import { MOST_SERIES } from './counted.js'
import type { Family } from './exposition.js'

/** Milliseconds for reading a metric. */
export const READ_MS = 2000
/** Maximum series per metric of an extension, and characters of a label value. */
const MOST_OF_DROP_INS = 500
const LONGEST_VALUE = 200

type Failed = (owner: string, where: string, error: unknown) => void

/** Reads all metrics concurrently. A failing metric is left out and attributed to its owner. */
export class Collecting {
  /** Refused metrics, so that each is reported as a fault of its plugin only once. */
  readonly #reported = new WeakSet<Metric>()
  #now: Promise<readonly Family[]> | undefined

  constructor(
    private readonly kernel: Pick<PluginKernel, 'collect' | 'clock' | 'redact'>,
    private readonly failed: Failed,
  ) {}

  /** Concurrent calls share the result. */
  families(): Promise<readonly Family[]> {
    this.#now ??= this.#read().finally(() => {
      this.#now = undefined
    })
    return this.#now
  }

  async #read(): Promise<readonly Family[]> {
    const names = new Set<string>()
    const wanted = this.kernel.collect(Metrics).filter(({ owner, entry }) => {
      const refused = names.has(entry.name) ? 'another metric has this name' : nameProblem(owner, entry.name)
      if (refused === undefined) names.add(entry.name)
      else if (!this.#reported.has(entry))
        this.failed(owner, entry.name, new Error(`${entry.name} is omitted: ${refused}`))
      if (refused !== undefined) this.#reported.add(entry)
      return refused === undefined
    })
    const read = await Promise.all(wanted.map(({ owner, entry }) => this.#family(owner, entry)))
    return read.filter(family => family !== undefined)
  }

  async #family(owner: string, metric: Metric): Promise<Family | undefined> {
    const abort = new AbortController()
    try {
      const reading = metric.read(abort.signal)
      const samples = reading instanceof Promise ? await within(this.kernel.clock, READ_MS, reading) : reading
      const checked = this.#checked(await samples, metric, isDropIn(owner) ? MOST_OF_DROP_INS : MOST_SERIES + 1)
      return { ...metric, samples: checked }
    } catch (error) {
      abort.abort()
      this.failed(owner, metric.name, new Error(`reading ${metric.name}: ${messageOf(error)}`, { cause: error }))
      return undefined
    }
  }

  /** Validates and copies values, since they may come from an extension. */
  #checked(samples: unknown, metric: Metric, most: number): (Sample | Distribution)[] {
    if (!Array.isArray(samples)) throw new TypeError('it did not return a list')
    if (samples.length > most) throw new RangeError(`it has ${samples.length} series, and at most ${most} are shown`)
    const knownKeys = new Set<string>()
    return samples.map((sample: Partial<Sample & Distribution>) => {
      const labels = this.#labels(sample.labels, metric.labels ?? [])
      const key = Object.values(labels).join('\n')
      if (knownKeys.has(key)) throw new TypeError('it has two series with the same labels')
      knownKeys.add(key)
      if (metric.type !== 'histogram') return { labels, value: numberOf(sample.value) }
      const counts = [...(sample.counts ?? [])].map(numberOf)
      if (counts.length !== (metric.bounds?.length ?? 0) + 1)
        throw new TypeError('its buckets differ from its declaration')
      return { labels, counts, sum: numberOf(sample.sum) }
    })
  }

  #labels(labels: Labels = {}, names: readonly string[]): Labels {
    if (Object.keys(labels).length !== names.length) throw new TypeError('its labels differ from its declaration')
    return Object.fromEntries(
      names.map(name => {
        const value = labels[name]
        if (typeof value !== 'string') throw new TypeError(`the value of its label ${name} is not a text`)
        return [name, this.kernel.redact.text(value, LONGEST_VALUE)]
      }),
    )
  }
}

function nameProblem(owner: string, name: string): string | undefined {
  if (!isDropIn(owner)) return undefined
  const vendor = `${owner.split('.')[0]?.replaceAll('-', '_')}_`
  return name.startsWith(vendor) ? undefined : `the metrics of ${owner} begin with ${vendor}`
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError('one of its values is not a number')
  return value
}
