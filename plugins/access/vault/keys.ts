import path from 'node:path'
import type { Fault } from '../../../kernel/plugin.js'
import { WITHHELD } from '../../platform/processes/api.js'
import { VaultErrors } from './api.js'
import { keyOfText, newKeyText, textOfKey, type VaultKey } from './cipher.js'
import { moveKeyFile, readKeyFile, writeKeyFile } from './key-file.js'

/** Names of the key and of the former key (during a rotation) in the environment and in credentials. */
const VARIABLE = WITHHELD[0]
const VARIABLE_BEFORE = WITHHELD[1]
const CREDENTIAL = 'svc-vault-key'
const CREDENTIAL_BEFORE = 'svc-vault-key-previous'

/** Source of the key, in order of precedence. */
export type KeySource = 'environment' | 'credential' | 'file'

/** The keys of the daemon: `current` seals new values, `before` opens values that are not resealed yet. */
export interface KeyRing {
  readonly source: KeySource
  readonly current: VaultKey
  readonly before?: VaultKey
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Finds, creates and rotates the key. A rotation of the key file has two steps on disk: `vault.key.next` is created at the start,
 * and replaces `vault.key` once no secret is sealed with the old key. A crash at any moment leaves all keys in use; the next start
 * finds `vault.key.next` and continues.
 */
export class Keys {
  readonly file: string
  readonly #next: string

  constructor(
    folder: string,
    private readonly env: Env,
  ) {
    this.file = path.join(folder, 'vault.key')
    this.#next = `${this.file}.next`
  }

  /** Source of the key, which may not exist yet. */
  get source(): KeySource {
    if (this.env[VARIABLE]) return 'environment'
    return this.#credential(CREDENTIAL) ? 'credential' : 'file'
  }

  /** The current keys; undefined if there is none yet. @throws Fault: {@link VaultErrors} of keys */
  read(): KeyRing | undefined {
    const { source } = this
    switch (source) {
      case 'environment': {
        const current = ofVariable(VARIABLE, this.env[VARIABLE] ?? '')
        const text = this.env[VARIABLE_BEFORE]
        return ring(source, current, text ? ofVariable(VARIABLE_BEFORE, text) : undefined)
      }
      case 'credential':
        return ring(source, this.#credential(CREDENTIAL), this.#credential(CREDENTIAL_BEFORE))
      case 'file': {
        const key = readKeyFile(this.file)
        const next = readKeyFile(this.#next)
        return next ? ring(source, next, key) : ring(source, key, undefined)
      }
    }
  }

  /** Creates the key file. Durable when it returns. */
  create(): KeyRing {
    writeKeyFile(this.file, newKeyText())
    return this.read() as KeyRing
  }

  /**
   * Starts a rotation: from now on there are two keys.
   * @param held the key in use; its file is written again if it is missing, changed or readable by others
   * @throws Fault `vault_key_external`
   */
  begin(held: VaultKey): KeyRing {
    const refused = this.#external()
    if (refused) throw refused
    if (this.#fileKey()?.id !== held.id) writeKeyFile(this.file, textOfKey(held))
    writeKeyFile(this.#next, newKeyText())
    return this.read() as KeyRing
  }

  #fileKey(): VaultKey | undefined {
    try {
      return readKeyFile(this.file)
    } catch {
      return undefined
    }
  }

  /** Ends a rotation once no secret uses the former key. Does nothing for a key from outside. */
  finish(): void {
    if (this.source === 'file' && readKeyFile(this.#next)) moveKeyFile(this.#next, this.file)
  }

  #external(): Fault | undefined {
    switch (this.source) {
      case 'file':
        return undefined
      case 'environment':
        return VaultErrors.vault_key_external(`the key comes from ${VARIABLE}`, {
          next: `start the daemon with a new key in ${VARIABLE} and this one in ${VARIABLE_BEFORE}: it encrypts all secrets again`,
        })
      case 'credential':
        return VaultErrors.vault_key_external(`the key comes from the credential ${CREDENTIAL}`, {
          next: `start the daemon with a new credential ${CREDENTIAL} and this one as ${CREDENTIAL_BEFORE}: it encrypts all secrets again`,
        })
    }
  }

  #credential(name: string): VaultKey | undefined {
    const folder = this.env.CREDENTIALS_DIRECTORY
    return folder && path.isAbsolute(folder) ? readKeyFile(path.join(folder, name), 'system') : undefined
  }
}

function ring(source: KeySource, current: VaultKey | undefined, before: VaultKey | undefined): KeyRing | undefined {
  if (!current) return undefined
  return before && before.id !== current.id ? { source, current, before } : { source, current }
}

function ofVariable(name: string, text: string): VaultKey {
  const key = keyOfText(text)
  if (!key) throw VaultErrors.vault_key_invalid(`${name} does not hold 32 bytes in base64`)
  return key
}
