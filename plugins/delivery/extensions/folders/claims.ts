import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'

/** One of those that go by the name of an extension: what is installed, or a link of a developer. */
export interface Claimant {
  readonly name: string
  readonly key: string
  readonly link?: unknown
  /** Ends what runs of it, for that reason. */
  giveWay(why: Fault): Promise<void>
}

/** One thing that there can be only once. */
export interface Claim {
  readonly id: string
  /** For people, `code in the daemon` say. */
  readonly what: string
}

/**
 * What there can be only once in a daemon although several go by one name: code inside it, and records whose ids do not tell
 * of a workspace. What is installed has it before links do, and of links the one that came first.
 */
export class Claims {
  readonly #holders = new Map<string, Claimant>()

  /**
   * Claims that as well as what it has. Links that are in the way of what is installed have given way when it resolves.
   * @throws Fault `extension_dev_taken` naming who has it
   */
  async take(by: Claimant, wanted: readonly Claim[]): Promise<void> {
    const inTheWay = new Map<Claimant, Claim>()
    for (const claim of wanted) {
      const holder = this.#holders.get(idOf(by, claim))
      if (holder && holder !== by) inTheWay.set(holder, claim)
    }
    for (const [holder, claim] of inTheWay) if (!holder.link || by.link) throw taken(by, holder, claim)
    // First, so that who gives way does not come back.
    for (const claim of wanted) this.#holders.set(idOf(by, claim), by)
    for (const [holder, claim] of inTheWay) await holder.giveWay(taken(holder, by, claim))
  }

  /** It has nothing but that any more. */
  keep(by: Claimant, claims: readonly Claim[]): void {
    const ids = new Set(claims.map(claim => idOf(by, claim)))
    for (const [id, holder] of this.#holders) if (holder === by && !ids.has(id)) this.#holders.delete(id)
  }
}

const idOf = ({ name }: Claimant, { id }: Claim) => `${name}\n${id}`

function taken({ name }: Claimant, { key, link }: Claimant, { what }: Claim): Fault {
  const who = link ? `the link ${key}` : `the installed ${name}`
  return ExtensionErrors.extension_dev_taken(`there can be ${what} of ${name} only once, and ${who} has it`, {
    next: link ? command('extension list') : command('extension disable', name),
  })
}
