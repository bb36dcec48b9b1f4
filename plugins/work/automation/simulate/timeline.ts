import { iso } from '../../../../kernel/plugin.js'
import type { Timeline } from '../../../../schemas/automation/simulation.js'
import { minuteOf } from '../runs/room.js'
import { columnOf, type RunOf } from '../runs/run-row.js'
import { type Occasion, occasionToWire } from './simulated-runs.js'

/** Maximum number of fires and skips in one simulation. */
const MAX_OCCASIONS = 200_000
/** Maximum number of listed definitions that do not fire. */
const MAX_SILENT = 100
/** Maximum number of listed minutes with too many due occurrences. */
const MAX_CROWDED = 100

/** Filter and limits of the listed entries. */
export interface Listed {
  /** Id or name. */
  readonly only?: string | undefined
  readonly limit: number
  /** Maximum number of simultaneous runs, where further due ones wait. */
  readonly atOnce?: number
}

type Silence = Timeline['silent'][number]['why']

/** Collects the fires and skips of one part of a simulation. */
export class TimelineBook {
  readonly #occasions: Occasion[] = []
  readonly #skipped: Record<string, number> = {}
  readonly #heard = new Set<string>()
  /** Number of occurrences due in each minute. */
  readonly #due = new Map<number, number>()
  #listable = 0
  #fires = 0
  #skips = 0
  #last = 0

  constructor(private readonly listed: Listed) {}

  /** Whether the maximum is reached. */
  get isFull(): boolean {
    return this.#fires + this.#skips >= MAX_OCCASIONS
  }

  tell(occasion: Occasion): void {
    const id = idOf(occasion.of)
    this.#last = occasion.at
    this.#heard.add(id)
    const { scheduledAt, attempt } = occasion
    if (scheduledAt !== undefined && attempt === 1) {
      const minute = minuteOf(scheduledAt)
      this.#due.set(minute, (this.#due.get(minute) ?? 0) + 1)
    }
    if (occasion.skip) {
      this.#skips++
      this.#skipped[occasion.skip.reason] = (this.#skipped[occasion.skip.reason] ?? 0) + 1
    } else this.#fires++
    if (!isListed(this.listed, id, occasion.name)) return
    this.#listable++
    if (this.#occasions.length < this.listed.limit) this.#occasions.push(occasion)
  }

  toWire(
    span: { readonly from: number; readonly to: number },
    definitions: readonly { readonly of: RunOf; readonly name: string; readonly why: Silence }[],
  ): Timeline {
    const isSilent = ({ of, name }: (typeof definitions)[number]) =>
      !this.#heard.has(idOf(of)) && isListed(this.listed, idOf(of), name)
    const silent = definitions.filter(isSilent).slice(0, MAX_SILENT)
    const { atOnce = Infinity } = this.listed
    const crowded = [...this.#due].filter(([, due]) => due > atOnce).sort(([a], [b]) => a - b)
    return {
      from: iso(span.from),
      to: iso(span.to),
      definitions: definitions.length,
      fires: this.#fires,
      skips: this.#skips,
      skipped: this.#skipped,
      occasions: this.#occasions.map(occasionToWire),
      unlisted: this.#listable - this.#occasions.length,
      silent: silent.map(({ of, name, why }) => ({
        ...('jobId' in of ? { job_id: of.jobId } : { trigger_id: of.triggerId }),
        name,
        why,
      })),
      ...(crowded.length > 0 && {
        crowded: crowded.slice(0, MAX_CROWDED).map(([at, due]) => ({ at: iso(at), due })),
      }),
      ...(this.isFull ? { ended_early: iso(this.#last) } : {}),
    }
  }
}

const idOf = (of: RunOf) => columnOf(of)[1]
const isListed = ({ only }: Listed, id: string | null, name: string) =>
  only === undefined || only === id || only === name
