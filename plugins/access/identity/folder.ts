import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'

/** Bytes that the path of a Unix socket may have; Linux allows one more than macOS needs. */
const MOST_BYTES = 103
/** The longest name of a socket in it. */
const NAME_BYTES = '/ses_0123456789abcdef.sock'.length

/** A folder for sockets, 0700, and what removes it. */
export interface SocketFolder {
  readonly path: string
  remove(): Promise<void>
}

/**
 * Makes an empty folder whose paths are short enough: `own`, in the home, else a new one below `runtime`.
 * @param own absolute; what a killed daemon left in it goes
 */
export async function makeFolder(own: string, runtime: string): Promise<SocketFolder> {
  const fits = Buffer.byteLength(own) + NAME_BYTES <= MOST_BYTES
  await rm(own, { recursive: true, force: true })
  if (fits) await mkdir(own, { mode: 0o700 })
  const made = fits ? own : await mkdtemp(path.join(runtime, 'svc-'))
  return { path: made, remove: () => rm(made, { recursive: true, force: true }) }
}
