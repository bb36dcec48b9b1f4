import { lstatSync } from 'node:fs'
import { lstat, mkdir, readlink, realpath } from 'node:fs/promises'
import path from 'node:path'
import type { Provider } from '../../agents/providers/api.js'
import { type Guard, gitPaths, guard, worktreeOf } from './guard.js'
import { contains, inOrder, type Mount, sightOf } from './mounts.js'
import { programMounts, unwrapped } from './programs.js'

/** Programs, libraries and configuration of the system. */
const SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/opt',
  '/nix/store',
  '/gnu/store',
]
/** Files that a daemon running as root could read, and no agent needs. */
const SECRETS = ['/etc/shadow', '/etc/shadow-', '/etc/gshadow', '/etc/gshadow-', '/etc/sudoers']
/** Folders that are empty and private in every sandbox. */
const EMPTY = ['/tmp', '/var/tmp', '/run']

/** Inputs for the view of a session. */
export interface ViewInput {
  readonly argv: readonly string[]
  /** MCP servers that the agent starts, in the format of the protocol. */
  readonly mcpServers: readonly unknown[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly roots: readonly string[]
  /** Undefined for a program that is not an agent and has no files of its own. */
  readonly provider: Provider | undefined
  /** All providers, for the files through which their programs run code. */
  readonly providers: readonly Provider[]
  /** The provider of a command line's program. */
  programOf(argv: readonly string[]): Provider | undefined
  readonly userHome: string
  readonly daemonHome: string
  /** Folder with the daemon's own commands. */
  readonly bin: string | undefined
  /** The session's own socket. */
  readonly socket: string | undefined
  /** Canonical roots of all workspaces. */
  readonly workspaces: readonly string[]
}

/** The mounts of a session, and the guards for cleaning up after its processes. */
export interface View {
  readonly mounts: readonly Mount[]
  readonly guards: readonly Guard[]
  /** Absolute paths covered by the guards. */
  readonly guarded: readonly string[]
}

/** Why a sandbox cannot protect a folder: it contains a home, which would not be hidden. */
export function tooWide(roots: readonly string[], homes: readonly string[]): string | undefined {
  const wide = roots.find(root => homes.some(home => contains(root, home)))
  return (
    wide &&
    `the workspace ${wide} contains the home folder, which a sandbox hides; use a folder below it as the workspace`
  )
}

/** Everything visible to the processes of a session: the system, their program, their workspace and their own files. */
export async function viewOf(input: ViewInput): Promise<View> {
  const { roots, daemonHome, bin, socket } = input
  const { argv, env: assigned } = unwrapped(input.argv)
  const env = { ...input.env, ...assigned }
  const [home, userHome, ownHome] = await Promise.all([
    real(env.HOME ?? input.userHome),
    real(input.userHome),
    real(daemonHome),
  ])
  const homes = [...new Set([userHome, home, ownHome])]
  const empty = [...EMPTY, ...homes.filter(folder => folder !== '/')]
  const provider = input.programOf(argv) ?? input.provider

  const [system, own] = await Promise.all([systemMounts(), ownFiles(provider, home, env, daemonHome)])
  const base: Mount[] = [
    ...system,
    ...empty.map((folder): Mount => ({ kind: 'empty', path: folder })),
    ...roots.map((root): Mount => ({ kind: 'write', path: root })),
  ]
  const writable = [...roots, ...own.mounts.flatMap(({ kind, path: folder }) => (kind === 'write' ? [folder] : []))]
  const search = { cwd: input.cwd, env, closed: [...empty, '/'], writable }
  const commands = [
    input.argv.slice(0, 1),
    argv,
    ...serverCommands(input.mcpServers),
    ...(bin === undefined ? [] : [[path.join(bin, 'svc')]]),
  ]
  const [found, guarded] = await Promise.all([programMounts(commands, search), guardsOf(input, roots, own.guards)])
  const seenIn = (mounts: readonly Mount[]) => {
    const sight = sightOf(mounts)
    return (file: string) => ['read', 'write'].includes(sight(file) ?? '')
  }
  const isSystem = seenIn(base)
  const programs = found.filter(mount => !isSystem(mount.path) && !roots.includes(mount.path))
  const visible = [...base, ...own.mounts, ...programs]
  const isVisible = seenIn(visible)
  const foreign = input.workspaces.filter(root => !roots.some(mine => contains(mine, root)) && isVisible(root))

  return {
    mounts: inOrder([
      ...visible,
      ...foreign.map((root): Mount => ({ kind: 'empty', path: root })),
      ...guarded.flatMap(({ mounts }) => mounts),
      ...(socket === undefined ? [] : [{ kind: 'read', path: socket } as const]),
    ]),
    guards: guarded.map(one => one.guard),
    guarded: guarded.flatMap(({ places }) => places),
  }
}

/** Command lines of MCP servers, which the agent must be able to run. */
function serverCommands(servers: readonly unknown[]): readonly (readonly string[])[] {
  return servers.flatMap(server => {
    const { command, args = [] } = Object(server) as { command?: unknown; args?: unknown }
    return typeof command === 'string' ? [[command, ...(Array.isArray(args) ? args.map(String) : [])]] : []
  })
}

/** The existing system folders; links among them stay links. */
async function systemMounts(): Promise<Mount[]> {
  // The system is on a local disk, where a look takes less time than a turn of the thread pool.
  const stateOf = (file: string) => {
    try {
      return lstatSync(file, { throwIfNoEntry: false })
    } catch {
      return undefined
    }
  }
  const folders = SYSTEM.map(async (folder): Promise<Mount[]> => {
    const found = stateOf(folder)
    if (found?.isSymbolicLink()) return [{ kind: 'link', path: folder, target: await readlink(folder) }]
    return found ? [{ kind: 'read', path: folder }] : []
  })
  const secrets = SECRETS.map((file): Mount[] => (stateOf(file) ? [{ kind: 'blank', path: file }] : []))
  const resolver = real('/etc/resolv.conf').then((file): Mount[] => {
    return !file.startsWith('/etc/') && stateOf(file) ? [{ kind: 'read', path: file }] : []
  })
  const mounts = await Promise.all([...folders, ...secrets, resolver])
  return [{ kind: 'link', path: '/var/run', target: '../run' }, ...mounts.flat()]
}

/** Files of the agent's program in the home and in folders named by variables, and its separate home, if it has one. */
async function ownFiles(
  provider: Provider | undefined,
  home: string,
  env: Readonly<Record<string, string>>,
  daemonHome: string,
) {
  const named = (provider?.ownFilesEnv ?? []).flatMap(name => env[name] ?? [])
  const isolated = provider && contains(path.join(daemonHome, 'providers'), home) ? [home] : []
  const wanted = [...isolated, ...named, ...(provider?.ownFiles ?? []).map(file => path.join(home, file))]
  const mounts: Mount[] = []
  for (const file of wanted) {
    if (!path.isAbsolute(file)) continue
    // Created now, so that files written by the first run exist for the second one.
    if (path.extname(file) !== '.json') await mkdir(file, { recursive: true, mode: 0o700 }).catch(() => {})
    const found = await lstat(file).catch(() => undefined)
    const target = found && (await real(file))
    if (target === undefined) continue
    mounts.push({ kind: 'write', path: target })
    if (target !== file) mounts.push({ kind: 'link', path: file, target })
  }
  const code = (provider?.codeFiles ?? []).map(file => path.join(home, file))
  const writable = mounts.filter(({ kind }) => kind === 'write').map(mount => mount.path)
  const guards = writable.map(folder => ({
    folder,
    files: code.filter(file => file !== folder && contains(folder, file)).map(file => path.relative(folder, file)),
  }))
  return { mounts, guards: guards.filter(({ files }) => files.length > 0) }
}

async function guardsOf(
  { providers }: ViewInput,
  roots: readonly string[],
  own: readonly { readonly folder: string; readonly files: readonly string[] }[],
) {
  const code = providers.flatMap(({ codeFiles = [] }) => codeFiles)
  const guarded = await Promise.all([
    ...roots.map(root => guard(root, ['.svc', ...gitPaths(), ...code])),
    ...own.map(({ folder, files }) => guard(folder, files)),
    ...roots.map(async root => {
      const worktree = await worktreeOf(root)
      if (!worktree) return undefined
      const name = path.basename(worktree.common)
      const paths = [...gitPaths(name), ...gitPaths(path.join(name, 'worktrees', path.basename(worktree.own)))]
      return guard(path.dirname(worktree.common), paths)
    }),
  ])
  return guarded.filter(one => one !== undefined)
}

/** The canonical path; a missing path is returned unchanged. */
export const real = (file: string) => realpath(file).catch(() => file)
