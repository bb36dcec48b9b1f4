import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'

/** The installed extension or a developer's link, which can share one name. */
export interface Claimant {
  readonly name: string
  readonly key: string
  readonly link?: unknown
  /** Stops the running parts of the extension, with that reason. */
  giveWay(why: Fault): Promise<void>
}

/** A resource that only one claimant can hold. */
export interface Claim {
  readonly id: string
  /** For people, for example `code in the daemon`. */
  readonly what: string
}

/**
 * Resources that a daemon can have once per extension name: code in the daemon, and records whose ids do not include a
 * workspace. The installed extension takes precedence over links, and the first link over later ones.
 */
export class Claims {
  readonly #holders = new Map<string, Claimant>()

  /**
   * Adds claims to those already held. For the installed extension, conflicting links have given way when this
   * resolves.
   * @throws Fault `extension_dev_taken` that names the holder
   */
  async take(by: Claimant, wanted: readonly Claim[]): Promise<void> {
    const inTheWay = new Map<Claimant, Claim>()
    for (const claim of wanted) {
      const holder = this.#holders.get(idOf(by, claim))
      if (holder && holder !== by) inTheWay.set(holder, claim)
    }
    for (const [holder, claim] of inTheWay) if (!holder.link || by.link) throw taken(by, holder, claim)
    // The new holder is set first, so that the link that gives way cannot claim it again.
    for (const claim of wanted) this.#holders.set(idOf(by, claim), by)
    for (const [holder, claim] of inTheWay) await holder.giveWay(taken(holder, by, claim))
  }

  /** Releases all claims but these. */
  keep(by: Claimant, claims: readonly Claim[]): void {
    const ids = new Set(claims.map(claim => idOf(by, claim)))
    for (const [id, holder] of this.#holders) if (holder === by && !ids.has(id)) this.#holders.delete(id)
  }
}

const idOf = ({ name }: Claimant, { id }: Claim) => `${name}\n${id}`

function taken({ name }: Claimant, { key, link }: Claimant, { what }: Claim): Fault {
  const who = link ? `the link ${key}` : `the installed ${name}`
  return ExtensionErrors.extension_dev_taken(`${what} of ${name} can exist only once, and ${who} already has it`, {
    next: link ? command('extension list') : command('extension disable', name),
  })
}
