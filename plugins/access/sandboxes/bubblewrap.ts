import { inOrder, type Mount, mountArgs } from './mounts.js'

/**
 * Namespaces of a sandbox, strictest set first. Root without capabilities has no privileges outside. A PID namespace ends with its
 * first process, so no process outlives it. `--new-session` is omitted: the daemon already starts each process in a session
 * without a terminal, and signals to its process group must reach it.
 */
export const NAMESPACES: readonly (readonly string[])[] = [
  ['--unshare-user', '--disable-userns'],
  ['--unshare-user'],
].map(first => [
  ...first,
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--cap-drop',
  'ALL',
  '--die-with-parent',
])

/** Variables that refer to resources outside: sockets of a desktop, of key agents, of containers. */
const OUTSIDE =
  /^(?:SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*|XDG_RUNTIME_DIR|XAUTHORITY|DISPLAY|WAYLAND_.*|DOCKER_.*|CONTAINER_HOST|GNOME_KEYRING_.*|SVC_HOME|SUDO_.*|KRB5CCNAME)$/

/** Options for modules that Node loads before a program; their files are not visible inside. */
const LOADS = /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader)\b/

/** The sandbox for a command. */
export interface Enclosure {
  /** Absolute path of bubblewrap. */
  readonly program: string
  readonly namespaces: readonly string[]
  readonly network: 'host' | 'none'
  readonly mounts: readonly Mount[]
  /** Variables in addition to those of the command. */
  readonly env: Readonly<Record<string, string>>
}

/** A command wrapped to run inside a sandbox. */
export function enclosed(
  { program, namespaces, network, mounts, env }: Enclosure,
  command: { readonly argv: readonly string[]; readonly cwd: string; readonly env: Readonly<Record<string, string>> },
) {
  const kept = Object.entries({ ...command.env, ...env }).filter(
    ([name, value]) => !OUTSIDE.test(name) && !(name === 'NODE_OPTIONS' && LOADS.test(value)),
  )
  // The new /dev hides what was mounted below it before, such as a workspace in /dev/shm.
  const isBelowDev = (mount: Mount) => mount.path.startsWith('/dev/')
  const sorted = inOrder(mounts)
  return {
    argv: [
      program,
      ...namespaces,
      ...(network === 'none' ? ['--unshare-net'] : []),
      ...sorted.filter(mount => !isBelowDev(mount)).flatMap(mountArgs),
      // After the system mounts, because these two are folders within them.
      '--proc',
      '/proc',
      // Root inside could write these without a capability and change settings of the host.
      ...['/proc/sys', '/proc/sysrq-trigger'].flatMap(file => ['--ro-bind-try', file, file]),
      '--dev',
      '/dev',
      ...sorted.filter(isBelowDev).flatMap(mountArgs),
      '--chdir',
      command.cwd,
      '--',
      ...command.argv,
    ],
    cwd: '/',
    env: { ...Object.fromEntries(kept), TMPDIR: '/tmp' },
  }
}
