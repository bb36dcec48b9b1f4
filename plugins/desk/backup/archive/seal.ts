import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'

/** The recipients or passphrase that a backup is encrypted with. */
export interface Sealing {
  /** Public keys of age. */
  readonly to: readonly string[]
  readonly passphrase?: string | undefined
}

/** The identities or passphrase that decrypt a backup. */
export interface Opening {
  /** Identities of age, `AGE-SECRET-KEY-1…`. */
  readonly identities: readonly string[]
  readonly passphrase?: string | undefined
}

/** Magic bytes of an age file. */
export const AGE_BEGIN = Buffer.from('age-encryption.org/v1\n')
/** Cost of the passphrase's key derivation: about a second. */
const WORK_FACTOR = 17

type Bytes = AsyncIterable<Uint8Array>

export const isSealing = ({ to, passphrase }: Sealing): boolean => to.length > 0 || passphrase !== undefined

/** Encrypts a stream. @throws Fault `backup_recipient_invalid` */
export async function sealed(bytes: Bytes, { to, passphrase }: Sealing): Promise<Bytes> {
  if (to.length > 0 && passphrase !== undefined)
    throw BackupErrors.backup_recipient_invalid('a backup is encrypted to recipients or with a passphrase, not both')
  // Loaded only when a backup is encrypted.
  const { Encrypter } = await import('age-encryption')
  const encrypter = new Encrypter()
  try {
    if (passphrase !== undefined) {
      encrypter.setScryptWorkFactor(WORK_FACTOR)
      encrypter.setPassphrase(passphrase)
    }
    for (const recipient of to) encrypter.addRecipient(recipient)
  } catch (error) {
    throw BackupErrors.backup_recipient_invalid(`a recipient is not an age recipient: ${messageOf(error)}`)
  }
  return fromWeb(await encrypter.encrypt(toWeb(bytes)))
}

/** Decrypts a stream. @throws Fault `backup_encrypted`, `backup_key_wrong` */
export async function opened(bytes: Bytes, { identities, passphrase }: Opening): Promise<Bytes> {
  if (identities.length === 0 && passphrase === undefined) throw BackupErrors.backup_encrypted()
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  try {
    if (passphrase !== undefined) decrypter.addPassphrase(passphrase)
    for (const identity of identities) decrypter.addIdentity(identity)
  } catch {
    throw BackupErrors.backup_key_wrong('the identity is not an age identity: a line AGE-SECRET-KEY-1… is expected')
  }
  try {
    return fromWeb(await decrypter.decrypt(toWeb(bytes)))
  } catch (error) {
    if (/no identity|incorrect|passphrase/i.test(messageOf(error))) throw BackupErrors.backup_key_wrong()
    throw BackupErrors.backup_damaged(`the backup cannot be decrypted: ${messageOf(error)}`)
  }
}

const toWeb = (bytes: Bytes) => Readable.toWeb(Readable.from(bytes, { objectMode: false })) as never

function fromWeb(stream: unknown): Bytes {
  return Readable.fromWeb(stream as ReadableStream<Uint8Array>) as Bytes
}
