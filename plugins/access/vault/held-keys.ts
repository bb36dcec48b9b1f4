import { type Db, type Fault, faultOf } from '../../../kernel/plugin.js'
import { VaultErrors } from './api.js'
import { open, seal, textOfKey } from './cipher.js'
import type { KeyRing, Keys } from './keys.js'
import { isAnySealedWith, rowsSealedWith, secrets } from './rows.js'

/** Secrets resealed in one transaction. */
const BATCH = 100

/** The keys in use, read once and kept while they open the stored secrets. Calls `hide` with the text of each key. */
export class HeldKeys {
  #ring: KeyRing | undefined
  readonly #hidden = new Set<string>()

  constructor(
    private readonly db: Db,
    readonly keys: Keys,
    private readonly hide: (text: string) => void,
  ) {}

  /** Undefined if there is neither a key nor a secret. @throws Fault of keys */
  get(): KeyRing | undefined {
    return this.#ring ?? this.#use(this.#read())
  }

  /** @throws Fault of keys */
  must(): KeyRing {
    const ring = this.get()
    if (!ring) throw VaultErrors.vault_key_missing(`${this.keys.file} is gone`)
    return ring
  }

  /** Creates a key if there is none yet. @throws Fault of keys */
  make(): KeyRing {
    const ring = this.get() ?? this.keys.create()
    this.#use(ring)
    return ring
  }

  /** Why no secret can be used; undefined if secrets are usable or there are none yet. */
  problem(): Fault | undefined {
    return faultIn(() => this.get())
  }

  /** Like {@link problem}, for the key on disk, which the next start will use. */
  diskProblem(): Fault | undefined {
    return faultIn(() => this.#read()) ?? this.problem()
  }

  /** @returns number of resealed secrets @throws Fault `vault_key_external`, and those of keys */
  async rotate(): Promise<number> {
    // Finishes an interrupted rotation first: there are never three keys.
    if (this.make().before) await this.finish()
    this.#use(this.keys.begin(this.must().current))
    return this.finish()
  }

  /**
   * Reseals the remaining secrets of the former key with the current one, then removes the former key. Each batch is one
   * transaction, so that after a crash every secret is sealed with one of two keys that both still exist.
   */
  async finish(): Promise<number> {
    const { current, before, source } = this.must()
    let resealed = 0
    for (let isMore = before !== undefined; isMore && before; ) {
      const count = await this.db.tx(t => {
        const rows = rowsSealedWith(t, before.id, BATCH)
        for (const row of rows) {
          const value = open(before, row, row.sealed)
          // A damaged value stays as it is.
          const sealed = value === undefined ? row.sealed : seal(current, row, value)
          secrets.update(t, { ref: row.ref }, { key_id: current.id, sealed })
        }
        return rows.length
      })
      resealed += count
      isMore = count === BATCH
    }
    this.keys.finish()
    this.#ring = { source, current }
    return resealed
  }

  #use(ring: KeyRing | undefined): KeyRing | undefined {
    for (const key of [ring?.current, ring?.before]) {
      if (!key || this.#hidden.has(key.id)) continue
      this.#hidden.add(key.id)
      this.hide(textOfKey(key))
    }
    this.#ring = ring
    return ring
  }

  #read(): KeyRing | undefined {
    const ring = this.keys.read()
    if (this.db.row('SELECT 1 FROM vault_secret LIMIT 1') === undefined) return ring
    if (!ring) throw VaultErrors.vault_key_missing(`${this.keys.file} is gone`)
    const { current, before = current, source } = ring
    if (isAnySealedWith(this.db, [current.id, before.id])) return ring
    throw VaultErrors.vault_key_wrong(`no secret is encrypted with the key ${current.id} from the ${source}`)
  }
}

function faultIn(work: () => unknown): Fault | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return faultOf(error)
  }
}
