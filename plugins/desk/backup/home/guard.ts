import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { jsonFileSync } from '../../../../kernel/kit/json-file.js'
import { readRegularFileSync } from '../../../../kernel/kit/read-file.js'
import { clip } from '../../../../kernel/kit/text.js'
import { BackupErrors } from '../api.js'
import { HOME_FILE, HomeMark, RESTORING_FILE } from './marks.js'

/** First line of `daemon.lock`: a part of the name of the socket that stands for the home; a copy has the same. */
const NONCE_LENGTH = 32
const LOCK_BYTES = 4096
const SOCKETS_BYTES = 64 * 1024 * 1024

const fileOf = (home: string) => jsonFileSync(path.join(home, HOME_FILE), HomeMark, null)

/** The mark of a home; undefined where there is none, or none that can be read. */
export function readMark(home: string): HomeMark | undefined {
  try {
    return fileOf(home).read() ?? undefined
  } catch {
    return undefined
  }
}

export const writeMark = (home: string, mark: HomeMark): void => fileOf(home).write(mark)

/**
 * Judges a home before anything of it is opened. A home that was moved has the mark of the place where it was, and nothing is there;
 * a copy has it too, and the original is there or runs.
 * @param home canonical path
 * @throws Fault `restore_unfinished`, `home_copied`
 */
export function guardHome(home: string): void {
  if (existsSync(path.join(home, RESTORING_FILE)))
    throw BackupErrors.restore_unfinished(`the restore into ${home} did not end: what is there is a part of a home`, {
      next: command('backup restore', placeholder('file'), '--home', home),
    })
  const mark = readMark(home)
  if (mark && mark.path !== home && readMark(mark.path)?.id === mark.id && !isSame(mark.path, home))
    throw copied(home, `of ${mark.path}, which is still there`, `remove or rename ${mark.path}`)
  const other = mark?.path === home ? undefined : mark?.path
  if (runsElsewhere(home))
    throw copied(home, `of ${other ?? 'a home'}, whose daemon runs`, 'stop that daemon and remove its home')
}

function copied(home: string, what: string, instead: string) {
  const text = `${home} is a copy ${what}: both would run every job and answer every message twice. Restore a backup into a new home instead; to go on with this one, ${instead}`
  return BackupErrors.home_copied(text, { next: command('backup create') })
}

/** Two names of one folder. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map(folder => statSync(folder, { throwIfNoEntry: false, bigint: true }))
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino
}

/** Whether a daemon runs whose home has the nonce of this one and is another folder. Only Linux has the list that tells. */
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
