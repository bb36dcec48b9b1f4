import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep, win32 } from 'node:path'
import type { ContentBlock } from '@agentclientprotocol/sdk'

/** What a prompt may ask for. */
export interface Directives {
  /** Where the report goes, as written in the prompt: not checked yet. */
  readonly target: string
  /** Milliseconds to wait between two steps, at most 5,000. */
  readonly pauseMs: number
}

/** The file the report goes to. */
export interface Target {
  readonly absolute: string
  /** Relative to the workspace, with `/`. */
  readonly relative: string
}

/** The prompt names a place the report must not go to. */
export class TargetRefused extends Error {
  constructor(
    readonly code: 'report_path_not_relative' | 'report_path_outside_workspace' | 'report_path_not_a_file',
    message: string,
  ) {
    super(`${message} Name a file inside the workspace, for example: report to docs/REPORT.md (${code})`)
    this.name = 'TargetRefused'
  }
}

export const REPORTS_DIRECTORY = 'svc-reports'
const DEFAULT_TARGET = `${REPORTS_DIRECTORY}/report.md`
const MAX_PAUSE_MS = 5_000
/** Characters looked at, from the end: a client may put an envelope of its own before what the user wrote. */
const MAX_TEXT = 64 * 1024

/**
 * Finds `report to <path>` and `pause <n>ms|s between steps` in the text of a prompt. The last one counts, because what
 * a client adds to a prompt comes first. What has neither a slash nor an ending of
 * text is no path, so that "report to the team" names nothing; a path with spaces stands in quotes.
 */
export function readDirectives(prompt: readonly ContentBlock[]): Directives {
  const text = prompt
    .map(block => (block.type === 'text' ? block.text : ''))
    .join('\n')
    .slice(-MAX_TEXT)
  const targets = Array.from(text.matchAll(/\breport to (?:"([^"\n]{1,1024})"|`([^`\n]{1,1024})`|(\S+))/gi), match => {
    return asPath(match[1] ?? match[2] ?? withoutPunctuation(match[3]!))
  })
  const pause = Array.from(text.matchAll(/\bpause (\d{1,9}) ?(ms|s) between steps\b/gi)).at(-1)
  const milliseconds = Number(pause?.[1] ?? 0) * (pause?.[2]?.toLowerCase() === 's' ? 1_000 : 1)
  return {
    target: targets.findLast(target => target !== undefined) ?? DEFAULT_TARGET,
    pauseMs: Math.min(milliseconds, MAX_PAUSE_MS),
  }
}

/**
 * Resolves the place of the report, following links as the file system would, before judging it.
 * Rejects with TargetRefused.
 */
export async function resolveTarget(cwd: string, path: string): Promise<Target> {
  if (isAbsolute(path) || win32.isAbsolute(path) || /^~|^[a-z][a-z0-9+.-]*:|\p{Cc}/iu.test(path)) {
    throw new TargetRefused('report_path_not_relative', 'The report was asked for at a path that is not relative.')
  }
  const absolute = resolve(cwd, path)
  const real = isInside(cwd, absolute) ? await realLocation(absolute) : undefined
  if (real === undefined || !isInside(await realpath(cwd), real) || real.split(sep).includes('.git')) {
    throw new TargetRefused('report_path_outside_workspace', 'The report was asked for outside the workspace.')
  }
  const existing = await lstat(real).catch(() => undefined)
  if (/[/\\]$/.test(path) || (existing && !existing.isFile())) {
    throw new TargetRefused('report_path_not_a_file', 'The report was asked for at a path that is not a file.')
  }
  return { absolute, relative: relative(cwd, absolute).split(sep).join('/') }
}

function asPath(name: string): string | undefined {
  return /[/\\]|\.(?:md|markdown|txt)$|^\.\.?$/i.test(name) ? name : undefined
}

function withoutPunctuation(word: string): string {
  const bare = word.replace(/^[('"<[]{1,8}/, '').replace(/[,;:!?)'">\]]{1,8}$/, '')
  return /[^.]\.$/.test(bare) ? bare.slice(0, -1) : bare
}

function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** The path after links, of which the end may not exist yet; undefined when something in it cannot be followed. */
async function realLocation(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    // A name that is there but leads nowhere is a dangling link: writing would create what it points to.
    const isThere = await lstat(path).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
    )
    const parent = isThere ? undefined : await realLocation(dirname(path))
    return parent === undefined ? undefined : join(parent, basename(path))
  }
}
