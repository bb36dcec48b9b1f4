import { iso } from '../../../kernel/plugin.js'
import type { Timeline } from '../../../schemas/automation/simulation.js'
import { columnOf, type RunOf } from '../runs/run-row.js'
import { type Occasion, occasionToWire } from './simulated-runs.js'

/** Maximum number of fires and skips in one simulation. */
const MAX_OCCASIONS = 200_000
/** Maximum number of listed definitions that do not fire. */
const MAX_SILENT = 100

/** Which entries are listed, and how many. */
export interface Listed {
  /** Id or name. */
  readonly only?: string | undefined
  readonly limit: number
}

type Silence = Timeline['silent'][number]['why']

/** Collects the fires and skips of one part of a simulation. */
export class TimelineBook {
  readonly #occasions: Occasion[] = []
  readonly #skipped: Record<string, number> = {}
  readonly #heard = new Set<string>()
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
      ...(this.isFull ? { ended_early: iso(this.#last) } : {}),
    }
  }
}

const idOf = (of: RunOf) => columnOf(of)[1]
const isListed = ({ only }: Listed, id: string | null, name: string) =>
  only === undefined || only === id || only === name
