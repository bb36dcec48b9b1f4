import { closeSync, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { command, shellWord } from '../../../kernel/kit/commands/command-line.js'
import { openRegularFileSync } from '../../../kernel/kit/read-file.js'
import { faultOf, messageOf } from '../../../kernel/plugin.js'
import { VaultErrors } from './api.js'
import { keyOfText, type VaultKey } from './cipher.js'

/** A key has 44 characters; what is longer is none. */
const MAX_BYTES = 256

/** Whom a file must be closed to. The system guards the files of its credentials itself, and shows them by its own rules. */
export type Guard = 'own' | 'system'

/**
 * The key in a file; undefined when there is none.
 * @throws Fault `vault_key_readable`, `vault_key_invalid`, `vault_key_unreadable`; the text of the file is in none of them
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
    // Of the file that is read, not of what lay there a moment before.
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

/** Writes a key to a file of mode 0600, whole or not at all. Durable when it returns. @throws Fault `vault_key_unreadable` */
export function writeKeyFile(file: string, text: string): void {
  const draft = `${file}.tmp`
  guarded(file, () => {
    // Left by a crash. A new file, for one that was there keeps its mode and whoever has it open.
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

/** Puts one file in the place of another. Durable when it returns. @throws Fault `vault_key_unreadable` */
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
      next: 'free space on the disk, or give the home back to the user of the daemon',
    })
  }
}
