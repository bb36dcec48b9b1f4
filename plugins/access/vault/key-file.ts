import { closeSync, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { command, shellWord } from '../../../kernel/kit/commands/command-line.js'
import { openRegularFileSync } from '../../../kernel/kit/read-file.js'
import { faultOf, messageOf } from '../../../kernel/plugin.js'
import { VaultErrors } from './api.js'
import { keyOfText, type VaultKey } from './cipher.js'

/** A key has 44 characters; a longer file is invalid. */
const MAX_BYTES = 256

/** Required protection of a file. The system protects its own credential files with different permissions. */
export type Guard = 'own' | 'system'

/**
 * Reads the key in a file; undefined if there is no file.
 * @throws Fault `vault_key_readable`, `vault_key_invalid`, `vault_key_unreadable`; none contains the text of the file
 */
export function readKeyFile(file: string, guard: Guard = 'own'): VaultKey | undefined {
  const text = readText(file, guard)
  if (text === undefined) return undefined
  const key = keyOfText(text)
  if (!key) throw VaultErrors.vault_key_invalid(`${file} does not hold 32 bytes in base64`)
  return key
}

function readText(file: string, guard: Guard): string | undefined {
  let handle: number
  try {
    handle = openRegularFileSync(file, { links: guard === 'own' ? 'refuse' : 'follow' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw VaultErrors.vault_key_unreadable(`${file} cannot be read: ${messageOf(error)}`, { next: faultOf(error).next })
  }
  try {
    // Checks the open file, because the path could have been replaced before.
    const { mode, uid } = fstatSync(handle)
    if (guard === 'own') mustBeClosed(file, mode, uid)
    const buffer = Buffer.alloc(MAX_BYTES)
    return buffer.subarray(0, readSync(handle, buffer)).toString('latin1')
  } finally {
    closeSync(handle)
  }
}

function mustBeClosed(file: string, mode: number, uid: number): void {
  const self = process.getuid?.()
  if (self !== undefined && uid !== self)
    throw VaultErrors.vault_key_readable(`${file} belongs to user ${uid}, and the daemon runs as ${self}`, {
      next: `chown ${self} ${shellWord(file)}, then ${command('vault rotate')}`,
    })
  if ((mode & 0o077) === 0) return
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  throw VaultErrors.vault_key_readable(`${file} has mode ${octal}: other users of this machine may have read it`, {
    next: `chmod 0600 ${shellWord(file)}, then ${command('vault rotate')}`,
  })
}

/** Atomically writes a key to a file of mode 0600. Durable when it returns. @throws Fault `vault_key_unreadable` */
export function writeKeyFile(file: string, text: string): void {
  const draft = `${file}.tmp`
  guarded(file, () => {
    // Removes the remains of a crash: an existing file would keep its mode and its open readers.
    rmSync(draft, { force: true })
    const handle = openSync(draft, 'wx', 0o600)
    try {
      writeSync(handle, `${text}\n`)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    replace(draft, file)
  })
}

/** Replaces a file by another one. Durable when it returns. @throws Fault `vault_key_unreadable` */
export function moveKeyFile(from: string, to: string): void {
  guarded(to, () => replace(from, to))
}

function replace(from: string, to: string): void {
  renameSync(from, to)
  const folder = openSync(path.dirname(to), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function guarded(file: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw VaultErrors.vault_key_unreadable(`${file} cannot be written: ${messageOf(error)}`, {
      next: 'free disk space, or make the user of the daemon the owner of the home',
    })
  }
}
