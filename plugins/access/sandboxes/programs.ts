import { closeSync, readSync } from 'node:fs'
import { access, lstat, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { openRegularFileSync } from '../../../kernel/kit/read-file.js'
import { contains, type Mount } from './mounts.js'

const FIRST_LINE = 256
/** Bytes of a script of a shell that are looked through. */
const SCRIPT = 64 * 1024
const SHELLS = new Set(['sh', 'bash', 'dash', 'ksh', 'zsh'])
const MARKERS = ['package.json', 'extension.json', 'pyproject.toml', 'pyvenv.cfg', 'conda-meta']

type Env = Readonly<Record<string, string | undefined>>

/** A command line behind `env NAME=value …`, and the variables that stand before it. */
export function unwrapped(argv: readonly string[]): { argv: readonly string[]; env: Readonly<Record<string, string>> } {
  if (path.basename(argv[0] ?? '') !== 'env') return { argv, env: {} }
  const end = argv.findIndex((word, at) => at > 0 && !/^\w+=/.test(word))
  if (end < 0 || argv[end]?.startsWith('-')) return { argv, env: {} }
  const pairs = argv.slice(1, end).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
  return { argv: argv.slice(end), env: Object.fromEntries(pairs) }
}

/** Where programs are looked for, and what of them may be shown. */
export interface ProgramSearch {
  readonly cwd: string
  readonly env: Env
  /** Folders that no mount may contain whole: homes, folders of temporary files. */
  readonly closed: readonly string[]
  /** Folders in which the agent can write: what a script there names is its choice, and is not shown for it. */
  readonly writable: readonly string[]
}

interface Look extends Pick<ProgramSearch, 'cwd' | 'writable'> {
  readonly search: readonly string[]
  isWide(folder: string): boolean
}

/**
 * What has to be readable for a program to run: its file, the package that it belongs to, its interpreter, what a script of a
 * shell hands over to, the folders of PATH.
 */
export async function programMounts(
  argv: readonly string[],
  { cwd, env, closed, writable }: ProgramSearch,
): Promise<Mount[]> {
  const search = (env.PATH ?? '').split(path.delimiter).filter(folder => path.isAbsolute(folder))
  const isWide = (folder: string) => closed.some(place => contains(folder, place))
  const mounts: Mount[] = []
  for (const folder of search) {
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || isWide(real)) continue
    mounts.push({ kind: 'read', path: real }, ...(await linkAt(folder, real)))
  }
  const [command = '', ...rest] = argv
  const files = [await found(command, search, cwd), ...rest.filter(word => path.isAbsolute(word))]
  for (const file of files)
    if (file !== undefined) mounts.push(...(await fileMounts(file, { search, cwd, writable, isWide })))
  return mounts
}

async function fileMounts(file: string, look: Look, level = 0): Promise<Mount[]> {
  const real = await realpath(file).catch(() => undefined)
  if (real === undefined || !(await stat(real).catch(() => undefined))?.isFile()) return []
  const place = await packageOf(real, look.isWide)
  const own: Mount[] = [{ kind: 'read', path: place }, ...(await linksTo(file, real))]
  const interpreter = level < 3 ? await interpreterOf(real, look.search, look.cwd) : undefined
  if (interpreter === undefined) return own
  const isShell = SHELLS.has(path.basename(interpreter)) && !look.writable.some(folder => contains(folder, real))
  const next = [interpreter, ...(isShell ? handedOver(real) : [])]
  return [...own, ...(await Promise.all(next.map(one => fileMounts(one, look, level + 1)))).flat()]
}

/** Files that a script of a shell runs instead of itself, as wrappers do that package managers and people write. */
function handedOver(script: string): string[] {
  const lines = startOf(script, SCRIPT).match(/^\s*exec\s.*$/gm) ?? []
  const words = lines.flatMap(line => [...line.matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)])
  return words.map(([, single, double, bare]) => single ?? double ?? bare ?? '').filter(word => path.isAbsolute(word))
}

/** The folder that a program needs whole, or the file alone. */
async function packageOf(file: string, isWide: (folder: string) => boolean): Promise<string> {
  const modules = `${path.sep}node_modules${path.sep}`
  const at = file.indexOf(modules)
  if (at >= 0) return file.slice(0, at + modules.length - 1)
  for (let folder = path.dirname(file); !isWide(folder); folder = path.dirname(folder)) {
    for (const marker of MARKERS) if (await isRoot(path.join(folder, marker))) return folder
  }
  // An interpreter brings its library beside its folder: <prefix>/bin/python, <prefix>/lib.
  const prefix = path.dirname(path.dirname(file))
  const isPrefix = path.basename(path.dirname(file)) === 'bin' && !isWide(prefix) && !isWide(path.dirname(prefix))
  return isPrefix && (await isThere(path.join(prefix, 'lib'))) ? prefix : file
}

/** A package.json without a name says of what kind the modules beside it are, and belongs to the package around it. */
const isRoot = async (marker: string) =>
  (await isThere(marker)) && (path.basename(marker) !== 'package.json' || /"name"\s*:/.test(startOf(marker, SCRIPT)))

const isThere = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  )

/** Of a script by its first line. */
async function interpreterOf(file: string, search: readonly string[], cwd: string): Promise<string | undefined> {
  const first = /^#! *([^\n]*)\n/.exec(startOf(file, FIRST_LINE))?.[1]
  const [program = '', ...args] = first?.trim().split(/\s+/) ?? []
  const name = path.basename(program) === 'env' ? args.find(word => !word.startsWith('-')) : program
  return name ? found(name, search, cwd) : undefined
}

/** The first bytes of a file; empty for a program that may be run and not read, which is no script. */
function startOf(file: string, bytes: number): string {
  const start = Buffer.alloc(bytes)
  try {
    const handle = openRegularFileSync(file)
    try {
      return start.toString('utf8', 0, readSync(handle, start))
    } finally {
      closeSync(handle)
    }
  } catch {
    return ''
  }
}

async function found(command: string, search: readonly string[], cwd: string): Promise<string | undefined> {
  if (command.includes('/')) return path.resolve(cwd, command)
  for (const folder of search) {
    const file = path.join(folder, command)
    if ((await stat(file).catch(() => undefined))?.isFile()) return file
  }
  return undefined
}

/** A link is seen as one: what it belongs to is found from where it leads. */
async function linksTo(file: string, real: string): Promise<Mount[]> {
  const isLink = (await lstat(file).catch(() => undefined))?.isSymbolicLink() ?? false
  return isLink ? linkAt(file, real) : []
}

/** At its canonical place: its folder may be reached by a link too, as `/bin` is. */
async function linkAt(named: string, target: string): Promise<Mount[]> {
  const folder = await realpath(path.dirname(named)).catch(() => path.dirname(named))
  const place = path.join(folder, path.basename(named))
  return place === target ? [] : [{ kind: 'link', path: place, target }]
}
