import { createPublicKey, verify } from 'node:crypto'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Db, Tx } from '../../../kernel/plugin.js'
import { signedExtension } from '../extensions/api.js'
import { MarketplaceErrors } from './api.js'
import { type Entry, type SkillVersion, signedText } from './feed.js'

export const pinTable = `CREATE TABLE marketplace_pin (
  slug TEXT NOT NULL UNIQUE, public_key TEXT NOT NULL, author TEXT NOT NULL, at INTEGER NOT NULL) STRICT`

/** Bytes before the 32 of an Ed25519 key in SPKI form. */
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

/** The authors' keys at the first installation of each skill: later versions need a signature by the same key. */
export class AuthorPins {
  constructor(private readonly db: Db) {}

  /** The pinned key of a slug; undefined if it was never installed with a signature. */
  keyOf(slug: string): string | undefined {
    const sql = 'SELECT public_key FROM marketplace_pin WHERE slug = ?'
    return this.db.get<{ public_key: string }>(sql, [slug])?.public_key
  }

  pin(t: Tx, { id, public_key: key, author = '' }: Entry, at: number): void {
    if (key === undefined) return
    t.run(
      'INSERT INTO marketplace_pin (slug, public_key, author, at) VALUES (?, ?, ?, ?) ON CONFLICT (slug) DO NOTHING',
      [id, key, author, at],
    )
  }

  forget(t: Tx, slug: string): void {
    t.run('DELETE FROM marketplace_pin WHERE slug = ?', [slug])
  }

  /** @throws Fault `skill_author_changed`, `skill_signature_invalid` */
  check(entry: Entry, version: SkillVersion, sha256: string): void {
    const pinned = this.keyOf(entry.id)
    const { public_key: key, id } = entry
    if (pinned !== undefined && (key !== pinned || version.signature === undefined)) {
      const now =
        key === undefined || version.signature === undefined ? 'it is not signed now' : 'it has another key now'
      throw MarketplaceErrors.skill_author_changed(`${id} was signed when you installed it, ${now}`)
    }
    if (key === undefined) return
    if (version.signature === undefined)
      throw MarketplaceErrors.skill_signature_invalid(`${id} ${version.version} has a key, but no signature`)
    if (!isSigned(key, signedText(id, version.version, sha256), version.signature))
      throw MarketplaceErrors.skill_signature_invalid(
        `the signature of ${id} ${version.version} was not made with its key for this archive`,
      )
  }
}

/**
 * Checks the authors of extensions. The key is stored with the installation, in one transaction; earlier versions
 * pinned it by the name of the extension.
 */
export class ExtensionAuthors {
  constructor(private readonly pins: AuthorPins) {}

  /**
   * @param installed public key of the installed extension
   * @returns the key that signed the entry; undefined for an unsigned one
   * @throws Fault `extension_author_changed`, `extension_signature_invalid`
   */
  check(
    { name, version = '', public_key: key, signature, digest_sha256: sha256 }: Entry,
    installed: string | undefined,
  ): string | undefined {
    const pinned = installed ?? this.pins.keyOf(idOf(name))
    if (pinned !== undefined && (key !== pinned || signature === undefined))
      throw MarketplaceErrors.extension_author_changed(
        `${name} was signed when you installed it, ${signature === undefined ? 'it is not signed now' : 'it has another key now'}`,
        { next: `to accept the new author: ${command('extension remove', name)}; then install it again` },
      )
    if (key === undefined && signature === undefined) return undefined
    const isGood =
      key !== undefined &&
      signature !== undefined &&
      sha256 !== undefined &&
      isSigned(key, signedExtension(name, version, sha256), signature)
    if (!isGood)
      throw MarketplaceErrors.extension_signature_invalid(
        `the signature of ${name} ${version} was not made with its key for this archive`,
      )
    return key
  }

  forget(t: Tx, name: string): void {
    this.pins.forget(t, idOf(name))
  }
}

const idOf = (name: string) => `extension/${name}`

/** Whether a text has a valid Ed25519 signature; false for an invalid key. */
export function isSigned(publicKey: string, text: string, signature: string): boolean {
  try {
    const der = Buffer.concat([SPKI_HEAD, Buffer.from(publicKey, 'base64')])
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}
