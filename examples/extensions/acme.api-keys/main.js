import { createHash } from 'node:crypto'
import { defineErrors, definePlugin, kind, surfaceOf } from 'svc/plugin'
import * as v from 'valibot'

/** A key is a record: `put` makes one, `delete` revokes it, both at once. The key itself is never stored. */
const Key = kind({
  name: 'acme.key',
  spec: v.object({
    sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
    /** Kinds of records that it may read and write; all where there are none. */
    kinds: v.optional(v.array(v.string()), []),
  }),
  maxBytes: 4096,
})
const Errors = defineErrors({
  acme_key_unknown: { status: 401, message: 'nobody has this API key', next: 'svc resource list acme.key' },
})

class Keys {
  /** Actors by the hash of their key: looking a hash up tells nothing of how much of a key was right. */
  #actors = new Map()
  #hashes = new Map()

  project({ records, removed }) {
    for (const id of [...records.map(record => record.id), ...removed]) {
      this.#actors.delete(this.#hashes.get(id))
      this.#hashes.delete(id)
    }
    for (const { id, spec } of records) {
      this.#hashes.set(id, spec.sha256)
      this.#actors.set(spec.sha256, actorOf(id, spec.kinds))
    }
  }

  /** Leaves callers without a key, or with a token of svc itself, to other plugins. An unknown key gets a 401. */
  whoAsks({ headers }) {
    const [, key] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? []
    if (key === undefined || key.startsWith('svc_')) return undefined
    return this.#actors.get(createHash('sha256').update(key).digest('hex')) ?? Errors.acme_key_unknown()
  }
}

const actorOf = (id, grantedKinds) => ({
  kind: 'operator',
  id: `key:${id}`,
  owner: { kind: 'operator', id: `key:${id}` },
  source: { kind: 'daemon', id: 'system' },
  origin: 'http',
  grantedKinds,
})

const { reconciler } = surfaceOf()

export default definePlugin({ name: 'acme.api-keys', version: '1.0.0', service: async () => Keys }).surface({
  kinds: [Key],
  errors: [Errors],
  reconcilers: [reconciler({ kind: Key, run: (service, batch) => service.project(batch) })],
  hooks: { authenticate: (service, incoming) => service.whoAsks(incoming) },
})
