import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { jsonFileSync } from '../../../../kernel/kit/json-file.js'
import { readRegularFileSync } from '../../../../kernel/kit/read-file.js'
import { clip } from '../../../../kernel/kit/text.js'
import { BackupErrors } from '../api.js'
import { HOME_FILE, HomeMark, RESTORING_FILE } from './marks.js'

/**
 * Length of the nonce in the first line of `daemon.lock`. It is part of the home's socket name; a copied home has the same nonce.
 */
const NONCE_LENGTH = 32
const LOCK_BYTES = 4096
const SOCKETS_BYTES = 64 * 1024 * 1024

const fileOf = (home: string) => jsonFileSync(path.join(home, HOME_FILE), HomeMark, null)

/** The mark of a home; undefined if it is missing or unreadable. */
export function readMark(home: string): HomeMark | undefined {
  try {
    return fileOf(home).read() ?? undefined
  } catch {
    return undefined
  }
}

export const writeMark = (home: string, mark: HomeMark): void => fileOf(home).write(mark)

/**
 * Checks a home before anything in it is opened. The mark of a moved home names its former path, where no home exists; the mark
 * of a copied home names an original that still exists or runs.
 * @param home canonical path
 * @throws Fault `restore_unfinished`, `home_copied`
 */
export function guardHome(home: string): void {
  if (existsSync(path.join(home, RESTORING_FILE)))
    throw BackupErrors.restore_unfinished(`the restore into ${home} was interrupted: the home is incomplete`, {
      next: command('backup restore', placeholder('file'), '--home', home),
    })
  const mark = readMark(home)
  if (mark && mark.path !== home && readMark(mark.path)?.id === mark.id && !isSame(mark.path, home))
    throw copied(home, `of ${mark.path}, which still exists`, `remove or rename ${mark.path}`)
  const other = mark?.path === home ? undefined : mark?.path
  if (runsElsewhere(home))
    throw copied(home, `of ${other ?? 'a home'}, whose daemon runs`, 'stop that daemon and remove its home')
}

function copied(home: string, what: string, instead: string) {
  const text = `${home} is a copy ${what}: both would run every job and answer every message twice. Restore a backup into a new home instead; to use this one, ${instead}`
  return BackupErrors.home_copied(text, { next: command('backup create') })
}

/** Whether two paths name the same folder. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map(folder => statSync(folder, { throwIfNoEntry: false, bigint: true }))
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino
}

/** Whether a daemon runs on another folder with the nonce of this home. Only Linux lists the sockets. */
function runsElsewhere(home: string): boolean {
  try {
    const lock = readRegularFileSync(path.join(home, 'daemon.lock'), { maxBytes: LOCK_BYTES })
    const nonce = clip(lock?.toString('latin1') ?? '', NONCE_LENGTH)
    if (!/^[0-9a-f]{32}$/.test(nonce)) return false
    const { dev, ino } = statSync(home, { bigint: true })
    const own = `@svc.${dev}.${ino}.`
    const sockets = readRegularFileSync('/proc/net/unix', { maxBytes: SOCKETS_BYTES })?.toString('latin1') ?? ''
    return sockets.split('\n').some(line => line.includes(`.${nonce}`) && line.includes('@svc.') && !line.includes(own))
  } catch {
    return false
  }
}
