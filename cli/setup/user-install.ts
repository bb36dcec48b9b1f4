import { existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import type { Env } from '../address.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { MAN_MARK } from '../man-pages.js'
import { carryOut, type FileChange, ownFile, ownLines, textAt } from './owned-file.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

const MARK = 'written by svc completion install'
const BLOCK = 'completion of svc'
/** Paths of the package bash-completion, which loads scripts from a folder of the user. */
const BASH_COMPLETION = [
  '/usr/share/bash-completion/bash_completion',
  '/etc/bash_completion',
  '/usr/local/etc/profile.d/bash_completion.sh',
  '/opt/homebrew/etc/profile.d/bash_completion.sh',
]

const userHome = (env: Env) => env.HOME || homedir()
const folderOf = (env: Env, name: 'XDG_DATA_HOME' | 'XDG_CONFIG_HOME', usual: string) => {
  const value = env[name]
  return value && isAbsolute(value) ? value : join(userHome(env), usual)
}

/** The scripts call the installed `svc`, so that they know the commands of its version and of loaded extensions. */
const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# ${MARK}\neval "$(svc completion bash 2>/dev/null)"\n`,
  // Called with the first Tab, so that the start of a shell is not delayed.
  zsh: `# ${MARK}
_svc() {
  unfunction _svc
  eval "$(svc completion zsh 2>/dev/null)"
  (( $+functions[_svc] )) && _svc "$@"
}
compdef _svc svc
`,
  fish: `# ${MARK}\nsvc completion fish 2>/dev/null | source\n`,
}

function completionChanges(shell: Shell, env: Env, force: boolean, isRemoved: boolean): FileChange[] {
  const text = isRemoved ? undefined : SCRIPTS[shell]
  const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`
  if (shell === 'fish')
    return [ownFile(join(folderOf(env, 'XDG_CONFIG_HOME', '.config'), 'fish/completions/svc.fish'), MARK, text, force)]
  const data = folderOf(env, 'XDG_DATA_HOME', '.local/share')
  if (shell === 'zsh') {
    const path = join(data, 'svc/completion.zsh')
    const rc = join(env.ZDOTDIR || userHome(env), '.zshrc')
    const lines = `(( $+functions[compdef] )) || { autoload -Uz compinit; compinit -i; }\nsource ${quoted(path)}`
    return [ownFile(path, MARK, text, force), ...rcChange(rc, isRemoved ? undefined : lines)]
  }
  const path = join(data, 'bash-completion/completions/svc')
  const rc = join(userHome(env), '.bashrc')
  const isLoaded = BASH_COMPLETION.some(file => existsSync(file))
  return [ownFile(path, MARK, text, force), ...rcChange(rc, isRemoved || isLoaded ? undefined : `. ${quoted(path)}`)]
}

/** A missing file is not created just to remove lines from it. */
const rcChange = (rc: string, lines: string | undefined): FileChange[] =>
  lines === undefined && textAt(rc) === undefined ? [] : [ownLines(rc, BLOCK, lines)]

function shellOf({ args, io }: LocalContext): Shell {
  const named = args.shell ?? basename(io.env.SHELL ?? '')
  const shell = SHELLS.find(name => name === named)
  if (shell !== undefined) return shell
  throw new CliFault('usage', `no completion for ${JSON.stringify(named)}; supported shells: ${SHELLS.join(', ')}`, {
    exit: exitCodes.usage,
    next: 'svc completion install bash',
  })
}

/** `completion install`: enables the completion of `svc` in the user's shell from its next start on. */
export async function installCompletion(context: LocalContext): Promise<undefined> {
  const shell = shellOf(context)
  const changes = completionChanges(shell, context.io.env, context.options.force === true, false)
  return finish(context, changes, { shell }, `${shell} completes svc from its next start on: exec ${shell}`)
}

/** `completion uninstall`: removes the files and lines of `completion install`. */
export async function uninstallCompletion(context: LocalContext): Promise<undefined> {
  const shell = shellOf(context)
  const changes = completionChanges(shell, context.io.env, context.options.force === true, true)
  return finish(context, changes, { shell }, '')
}

/** `man install`: copies the manual pages into the user's folder for `man`. */
export async function installMan(context: LocalContext): Promise<undefined> {
  const { io, options } = context
  const from = join(io.root, 'man')
  const names = existsSync(from) ? readdirSync(from).filter(name => name.endsWith('.1')) : []
  if (names.length === 0) throw new CliFault('man_not_built', `${from} has no pages`, { next: 'npm run build' })
  const to = manFolder(io.env)
  const pages = names.map(name => ownFile(join(to, name), MAN_MARK, textAt(join(from, name)), options.force === true))
  const old = pagesIn(to).filter(name => !names.includes(name))
  const changes = [...pages, ...old.map(name => ownFile(join(to, name), MAN_MARK, undefined, false))]
  const isFound = (io.env.PATH ?? '').split(':').includes(join(userHome(io.env), '.local/bin')) || io.env.MANPATH
  const hint = isFound
    ? 'man svc'
    : `MANPATH=${join(to, '..')}: man svc   (~/.local/bin on the PATH makes it permanent)`
  return finish(context, changes, {}, `Read them: ${hint}`)
}

/** `man uninstall`: removes the pages that `man install` wrote. */
export async function uninstallMan(context: LocalContext): Promise<undefined> {
  const to = manFolder(context.io.env)
  const changes = pagesIn(to).map(name => ownFile(join(to, name), MAN_MARK, undefined, false))
  return finish(context, changes, {}, '')
}

const manFolder = (env: Env) => join(folderOf(env, 'XDG_DATA_HOME', '.local/share'), 'man/man1')

/** Pages installed by this program. */
function pagesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter(name => /^svc(?:-[a-z-]+)?\.1$/.test(name))
    .filter(name => textAt(join(folder, name))?.includes(MAN_MARK))
}

async function finish(
  { out, options, io }: LocalContext,
  changes: readonly FileChange[],
  about: Readonly<Record<string, unknown>>,
  hint: string,
): Promise<undefined> {
  if (options.print === true && !out.json) {
    for (const { path, text, change } of changes)
      io.stdout.write(`# ${path}: ${change === 'unchanged' ? 'unchanged' : `would be ${change}`}\n${text ?? ''}`)
    return undefined
  }
  if (options.print !== true) await carryOut(changes)
  if (out.json) {
    const files = changes.map(({ path, change }) => ({ path, change }))
    return void out.value({ ...about, files, dry_run: options.print === true })
  }
  const shown = changes.length > 4 ? changes.filter(({ change }) => change !== 'unchanged').slice(0, 4) : changes
  for (const { path, change } of shown) out.line(`${change} ${path}`)
  if (changes.length > shown.length) out.line(`${changes.length} files in all`)
  if (changes.length === 0) out.line('nothing was installed')
  if (hint !== '') out.line(hint)
  return undefined
}
