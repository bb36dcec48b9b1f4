import path from 'node:path'
import type { Fault } from '../../../kernel/plugin.js'
import { WITHHELD } from '../../platform/processes/api.js'
import { VaultErrors } from './api.js'
import { keyOfText, newKeyText, textOfKey, type VaultKey } from './cipher.js'
import { moveKeyFile, readKeyFile, writeKeyFile } from './key-file.js'

/** Names of a key, and of the one before it while secrets are sealed anew, where something outside hands them to the daemon. */
const VARIABLE = WITHHELD[0]
const VARIABLE_BEFORE = WITHHELD[1]
const CREDENTIAL = 'svc-vault-key'
const CREDENTIAL_BEFORE = 'svc-vault-key-previous'

/** Where the key comes from, strongest first. */
export type KeySource = 'environment' | 'credential' | 'file'

/** The keys that the daemon has: new values are sealed with `current`, `before` opens what is not sealed anew yet. */
export interface KeyRing {
  readonly source: KeySource
  readonly current: VaultKey
  readonly before?: VaultKey
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Finds, makes and changes the key. A rotation of the key file is two steps on the disk: `vault.key.next` is there from its
 * begin, and takes the place of `vault.key` when nothing is sealed with that any more. So a crash at any moment leaves all keys
 * that something is sealed with, and whoever finds `vault.key.next` goes on.
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

  /** Where the key comes from; it need not be there yet. */
  get source(): KeySource {
    if (this.env[VARIABLE]) return 'environment'
    return this.#credential(CREDENTIAL) ? 'credential' : 'file'
  }

  /** The keys as they are now; undefined when there is none yet. @throws Fault: {@link VaultErrors} of keys */
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

  /** Makes the key file. Durable when it returns. */
  create(): KeyRing {
    writeKeyFile(this.file, newKeyText())
    return this.read() as KeyRing
  }

  /**
   * Begins a rotation: from now on there are two keys.
   * @param held the key in use; its file is written anew where it is gone, or was changed or opened to others meanwhile
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

  /** Ends it, when nothing is sealed with the key before. A key that comes from outside has no such step. */
  finish(): void {
    if (this.source === 'file' && readKeyFile(this.#next)) moveKeyFile(this.#next, this.file)
  }

  #external(): Fault | undefined {
    switch (this.source) {
      case 'file':
        return undefined
      case 'environment':
        return VaultErrors.vault_key_external(`the key comes from ${VARIABLE}`, {
          next: `start the daemon with a new key in ${VARIABLE} and this one in ${VARIABLE_BEFORE}: it seals all secrets anew`,
        })
      case 'credential':
        return VaultErrors.vault_key_external(`the key comes from the credential ${CREDENTIAL}`, {
          next: `start the daemon with a new credential ${CREDENTIAL} and this one as ${CREDENTIAL_BEFORE}: it seals all secrets anew`,
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
