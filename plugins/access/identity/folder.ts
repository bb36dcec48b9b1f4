import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'

/** Longest path of a Unix socket in bytes, within the limits of macOS and Linux. */
const MOST_BYTES = 103
/** Length of the longest socket name in the folder. */
const NAME_BYTES = '/ses_0123456789abcdef.sock'.length

/** A folder for sockets, mode 0700, with its removal. */
export interface SocketFolder {
  readonly path: string
  remove(): Promise<void>
}

/**
 * Creates an empty folder whose socket paths are short enough: `own` in the home, or else a new folder below `runtime`.
 * @param own absolute path; the remains of a killed daemon there are removed
 */
export async function makeFolder(own: string, runtime: string): Promise<SocketFolder> {
  const fits = Buffer.byteLength(own) + NAME_BYTES <= MOST_BYTES
  await rm(own, { recursive: true, force: true })
  if (fits) await mkdir(own, { mode: 0o700 })
  const made = fits ? own : await mkdtemp(path.join(runtime, 'svc-'))
  return { path: made, remove: () => rm(made, { recursive: true, force: true }) }
}
