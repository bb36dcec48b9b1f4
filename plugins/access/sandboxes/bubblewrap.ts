import { inOrder, type Mount, mountArgs } from './mounts.js'

/**
 * Namespaces of every sandbox, the strictest set that works here first. Without capabilities root inside is nobody outside. A PID
 * namespace ends with its first process, so that nothing outlives it; `--new-session` is left out, because the daemon starts every
 * process in a session without a terminal, and a signal to its group has to reach it.
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

/** Variables that lead to what is outside: sockets of a desktop, of keys, of containers. */
const OUTSIDE =
  /^(?:SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*|XDG_RUNTIME_DIR|XAUTHORITY|DISPLAY|WAYLAND_.*|DOCKER_.*|CONTAINER_HOST|GNOME_KEYRING_.*|SVC_HOME|SUDO_.*|KRB5CCNAME)$/

/** Code that Node would load before a program, and that is not seen inside. */
const LOADS = /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader)\b/

/** What a command of a sandbox is put into. */
export interface Enclosure {
  /** Absolute path of bubblewrap. */
  readonly program: string
  readonly namespaces: readonly string[]
  readonly network: 'host' | 'none'
  readonly mounts: readonly Mount[]
  /** On top of what the command has. */
  readonly env: Readonly<Record<string, string>>
}

/** A command as it is started inside. */
export function enclosed(
  { program, namespaces, network, mounts, env }: Enclosure,
  command: { readonly argv: readonly string[]; readonly cwd: string; readonly env: Readonly<Record<string, string>> },
) {
  const kept = Object.entries({ ...command.env, ...env }).filter(
    ([name, value]) => !OUTSIDE.test(name) && !(name === 'NODE_OPTIONS' && LOADS.test(value)),
  )
  return {
    argv: [
      program,
      ...namespaces,
      ...(network === 'none' ? ['--unshare-net'] : []),
      ...inOrder(mounts).flatMap(mountArgs),
      // After the places of the system, whose folders these two are.
      '--proc',
      '/proc',
      // Root inside may write them without a capability, and what they set is that of the host.
      ...['/proc/sys', '/proc/sysrq-trigger'].flatMap(file => ['--ro-bind-try', file, file]),
      '--dev',
      '/dev',
      '--chdir',
      command.cwd,
      '--',
      ...command.argv,
    ],
    cwd: '/',
    env: { ...Object.fromEntries(kept), TMPDIR: '/tmp' },
  }
}
