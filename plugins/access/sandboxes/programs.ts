import { closeSync, readSync } from 'node:fs'
import { access, lstat, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { openRegularFileSync } from '../../../kernel/kit/read-file.js'
import { contains, type Mount } from './mounts.js'

const FIRST_LINE = 256
/** Most bytes of a shell script that are searched. */
const SCRIPT = 64 * 1024
const SHELLS = new Set(['sh', 'bash', 'dash', 'ksh', 'zsh'])
const MARKERS = ['package.json', 'extension.json', 'pyproject.toml', 'pyvenv.cfg', 'conda-meta']

type Env = Readonly<Record<string, string | undefined>>

/** The command line after `env NAME=value …`, and the variables set by it. */
export function unwrapped(argv: readonly string[]): { argv: readonly string[]; env: Readonly<Record<string, string>> } {
  if (path.basename(argv[0] ?? '') !== 'env') return { argv, env: {} }
  const end = argv.findIndex((word, at) => at > 0 && !/^\w+=/.test(word))
  if (end < 0 || argv[end]?.startsWith('-')) return { argv, env: {} }
  const pairs = argv.slice(1, end).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
  return { argv: argv.slice(end), env: Object.fromEntries(pairs) }
}

/** Search path for programs, and limits on the mounts for them. */
export interface ProgramSearch {
  readonly cwd: string
  readonly env: Env
  /** Folders that no mount may contain completely: homes and folders of temporary files. */
  readonly closed: readonly string[]
  /** Folders writable by the agent: paths in a script there are under its control, so they get no mounts. */
  readonly writable: readonly string[]
}

interface SearchContext extends Pick<ProgramSearch, 'cwd' | 'writable'> {
  readonly search: readonly string[]
  /** Mounts by level and file: several programs have the same interpreter. */
  readonly known: Map<string, Promise<Mount[]>>
  isWide(folder: string): boolean
}

/**
 * Read mounts that programs need: their files, their packages, their interpreters, programs that a shell script executes, and the
 * folders of PATH. The files are looked for at once, because the start of a session waits for them.
 */
export async function programMounts(
  commands: readonly (readonly string[])[],
  { cwd, env, closed, writable }: ProgramSearch,
): Promise<Mount[]> {
  const search = (env.PATH ?? '').split(path.delimiter).filter(folder => path.isAbsolute(folder))
  const isWide = (folder: string) => closed.some(closedFolder => contains(folder, closedFolder))
  const context = { search, cwd, writable, isWide, known: new Map<string, Promise<Mount[]>>() }
  const folders = search.map(async (folder): Promise<Mount[]> => {
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || isWide(real)) return []
    return [{ kind: 'read', path: real }, ...(await linkAt(folder, real))]
  })
  const programs = commands.map(async ([command = '', ...rest]) => {
    const files = [await found(command, search, cwd), ...rest.filter(word => path.isAbsolute(word))]
    const wanted = files.filter(file => file !== undefined)
    return (await Promise.all(wanted.map(file => fileMounts(file, context)))).flat()
  })
  return (await Promise.all([...folders, ...programs])).flat()
}

function fileMounts(file: string, context: SearchContext, level = 0): Promise<Mount[]> {
  const key = `${level} ${file}`
  const known = context.known.get(key) ?? mountsOf(file, context, level)
  context.known.set(key, known)
  return known
}

async function mountsOf(file: string, context: SearchContext, level: number): Promise<Mount[]> {
  const real = await realpath(file).catch(() => undefined)
  if (real === undefined || !(await stat(real).catch(() => undefined))?.isFile()) return []
  const packageRoot = await packageOf(real, context.isWide)
  const own: Mount[] = [{ kind: 'read', path: packageRoot }, ...(await linksTo(file, real))]
  const interpreter = level < 3 ? await interpreterOf(real, context.search, context.cwd) : undefined
  if (interpreter === undefined) return own
  const isShell = SHELLS.has(path.basename(interpreter)) && !context.writable.some(folder => contains(folder, real))
  const next = [interpreter, ...(isShell ? handedOver(real) : [])]
  return [...own, ...(await Promise.all(next.map(one => fileMounts(one, context, level + 1)))).flat()]
}

/** Programs that a shell script replaces itself with, as wrappers by package managers and people do. */
function handedOver(script: string): string[] {
  const lines = startOf(script, SCRIPT).match(/^\s*exec\s.*$/gm) ?? []
  const words = lines.flatMap(line => [...line.matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)])
  return words.map(([, single, double, bare]) => single ?? double ?? bare ?? '').filter(word => path.isAbsolute(word))
}

/** The folder that a program needs completely, or only its file. */
async function packageOf(file: string, isWide: (folder: string) => boolean): Promise<string> {
  const modules = `${path.sep}node_modules${path.sep}`
  const at = file.indexOf(modules)
  if (at >= 0) return file.slice(0, at + modules.length - 1)
  for (let folder = path.dirname(file); !isWide(folder); folder = path.dirname(folder)) {
    for (const marker of MARKERS) if (await isRoot(path.join(folder, marker))) return folder
  }
  // An interpreter has its library next to its folder: <prefix>/bin/python, <prefix>/lib.
  const prefix = path.dirname(path.dirname(file))
  const isPrefix = path.basename(path.dirname(file)) === 'bin' && !isWide(prefix) && !isWide(path.dirname(prefix))
  return isPrefix && (await isThere(path.join(prefix, 'lib'))) ? prefix : file
}

/** A package.json without a name only sets the type of the modules next to it and belongs to an enclosing package. */
const isRoot = async (marker: string) =>
  (await isThere(marker)) && (path.basename(marker) !== 'package.json' || /"name"\s*:/.test(startOf(marker, SCRIPT)))

const isThere = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  )

/** The interpreter in the first line of a script. */
async function interpreterOf(file: string, search: readonly string[], cwd: string): Promise<string | undefined> {
  const first = /^#! *([^\n]*)\n/.exec(startOf(file, FIRST_LINE))?.[1]
  const [program = '', ...args] = first?.trim().split(/\s+/) ?? []
  const name = path.basename(program) === 'env' ? args.find(word => !word.startsWith('-')) : program
  return name ? found(name, search, cwd) : undefined
}

/** The first bytes of a file; empty for an executable that is not readable, which cannot be a script. */
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

/** A link stays a link inside; its package is found from its target. */
async function linksTo(file: string, real: string): Promise<Mount[]> {
  const isLink = (await lstat(file).catch(() => undefined))?.isSymbolicLink() ?? false
  return isLink ? linkAt(file, real) : []
}

/** Uses the canonical folder, which may itself be reached through a link, such as `/bin`. */
async function linkAt(named: string, target: string): Promise<Mount[]> {
  const folder = await realpath(path.dirname(named)).catch(() => path.dirname(named))
  const link = path.join(folder, path.basename(named))
  return link === target ? [] : [{ kind: 'link', path: link, target }]
}
