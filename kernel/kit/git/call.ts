import path from 'node:path'

/** A complete git command, ready to be started. */
export interface GitCall {
  readonly argv: readonly string[]
  readonly cwd: string
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>
  /** Its standard input. */
  readonly input: string
}

/** The parameters of a git command. */
export interface GitWish {
  readonly args: readonly string[]
  /** A git folder whose configuration svc wrote itself; see `withRepository`. */
  readonly gitDir: string
  /** Absent: no files are accessed, and the command runs in the git folder. */
  readonly workTree?: string
  readonly input?: string
  /** The environment of the user who owns this git installation. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absent: git opens no connection, and the user's own configuration applies (such as filters of git-lfs). */
  readonly network?: boolean
}

/** Settings of every command, which take precedence over all configuration files. */
const ALWAYS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.pager=cat',
  'core.logAllRefUpdates=false',
  // An index that refers to a second file could not be handed back to the repository.
  'core.splitIndex=false',
  'credential.helper=',
  'commit.gpgSign=false',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'diff.ignoreSubmodules=all',
  'gc.auto=0',
  'maintenance.auto=false',
  'protocol.allow=never',
]

/** Additional settings for network access: only the usual transports, and received objects are checked. */
const NETWORK = [
  'core.attributesFile=/dev/null',
  'protocol.ext.allow=never',
  'protocol.file.allow=always',
  'protocol.http.allow=always',
  'protocol.https.allow=always',
  'protocol.ssh.allow=always',
  'fetch.fsckObjects=true',
]

/** The user's git variables that locate git's files; all others select programs or another repository. */
const KEPT = /^GIT_(?:EXEC_PATH|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM)$/

/** Environment variables for network commands: how to reach the network, and where git is. */
const HANDED_ON =
  /^(PATH|GIT_EXEC_PATH|SSH_AUTH_SOCK|SSL_CERT_FILE|SSL_CERT_DIR|(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY)$/

/** Environment of every command: no prompts, no editor, no helper, and no optional locks. */
const GUARDS = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  SSH_ASKPASS: 'false',
  GIT_EDITOR: 'false',
  GIT_SEQUENCE_EDITOR: 'false',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_LITERAL_PATHSPECS: '1',
}

/**
 * The only way in which svc calls git. Programs that a repository names (hooks, filters, diff and merge drivers, helpers, pagers,
 * editors, transports) are not started, because its own configuration is not read: every command uses a git folder that svc made.
 */
export function gitCall({ args, gitDir, workTree, input = '', env, network = false }: GitWish): GitCall {
  const settings = network ? [...ALWAYS, ...NETWORK] : ALWAYS
  return {
    argv: ['git', '--no-pager', ...settings.flatMap(setting => ['-c', setting]), ...args],
    cwd: workTree ?? gitDir,
    input,
    env: {
      ...handedOn(env, network),
      ...GUARDS,
      GIT_DIR: gitDir,
      ...(workTree !== undefined && { GIT_WORK_TREE: workTree }),
      ...(network ? ofNetwork(gitDir) : { GIT_ALLOW_PROTOCOL: 'none' }),
    },
  }
}

function handedOn(env: GitWish['env'], network: boolean): Record<string, string> {
  const isKept = (name: string) => (network ? HANDED_ON.test(name) : !name.startsWith('GIT_') || KEPT.test(name))
  const kept = Object.entries(env).flatMap(([name, value]) => (value && isKept(name) ? [[name, value] as const] : []))
  // A relative entry could find a program named git in the repository itself.
  const folders = (env.PATH ?? '').split(path.delimiter).filter(folder => path.isAbsolute(folder))
  return { ...Object.fromEntries(kept), PATH: folders.join(path.delimiter) }
}

/** Network commands ignore the user's configuration, which could send their credentials along. */
const ofNetwork = (gitDir: string) => ({
  HOME: gitDir,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_ALLOW_PROTOCOL: 'file:http:https:ssh',
  GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o ForwardAgent=no -o ClearAllForwardings=yes',
  GIT_LFS_SKIP_SMUDGE: '1',
})
