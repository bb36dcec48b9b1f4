import { nearest } from '../../kernel/kit/text.js'
import { CliFault, exitCodes } from '../fault.js'
import { entriesOf } from '../help-call.js'
import type { LocalContext } from '../local.js'
import { outputModes } from '../show/output.js'
import { type CommandData, isWatchable } from './command-data.js'
import { planningOf } from './command-options.js'
import { type Entry, groups } from './find-command.js'

const shells: Readonly<Record<string, (tree: Tree) => string>> = { bash, zsh, fish }

/** `completion`: a script that completes commands, their options, known values, and names known to the daemon. */
export async function printCompletion({ args, data, io }: LocalContext): Promise<undefined> {
  if (args.shell === 'words') {
    const { printCandidates } = await import('./candidates.js')
    return printCandidates(io, entriesOf(data), data)
  }
  const make = Object.entries(shells).find(([name]) => name === args.shell)?.[1]
  if (make === undefined) {
    const text = `no completion for ${JSON.stringify(args.shell)}; supported shells: ${Object.keys(shells).join(', ')}`
    const [meant = 'bash'] = nearest(String(args.shell), [...Object.keys(shells), 'install', 'uninstall'])
    throw new CliFault('usage', text, { exit: exitCodes.usage, next: `svc completion ${meant}` })
  }
  io.stdout.write(make(treeOf(data)))
  return undefined
}

/** The possible words after each path, and the options of each command. */
interface Tree {
  readonly words: ReadonlyMap<string, ReadonlySet<string>>
  readonly options: ReadonlyMap<string, readonly string[]>
  /** Known values of an option, by command and option. */
  readonly values: ReadonlyMap<string, readonly string[]>
}

function treeOf(data: CommandData): Tree {
  const words = new Map<string, Set<string>>()
  const options = new Map<string, string[]>()
  const values = new Map<string, readonly string[]>()
  for (const [entry, called] of entriesOf(data).flatMap(entry => pathsOf(entry).map(path => [entry, path] as const))) {
    const path = called.split(' ')
    path.forEach((word, i) => {
      const before = path.slice(0, i).join(' ')
      words.set(before, (words.get(before) ?? new Set()).add(word))
    })
    const own =
      entry.kind === 'route' ? entry.options.map(({ option }) => option) : entry.options.map(({ name }) => name)
    const follow = entry.kind === 'route' && entry.follow ? ['follow'] : []
    const watch = entry.kind === 'route' && isWatchable(entry) ? ['watch'] : []
    const plans = planningOf(entry).map(({ name }) => name)
    const all = new Set([...own, ...follow, ...watch, 'output', 'json', 'quiet', ...plans, 'help'])
    options.set(
      called,
      [...all].map(name => `--${name}`),
    )
    for (const { option, values: known } of entry.kind === 'route' ? entry.options : []) {
      if (known) values.set(`${called} --${option}`, known)
    }
    for (const { name, values: known } of entry.kind === 'route' ? [] : entry.options) {
      if (known) values.set(`${called} --${name}`, known)
    }
  }
  return { words, options, values }
}

/** The paths of a command; with a group alias there is a second one: `job list` besides `automation jobs list`. */
const pathsOf = ({ path }: Entry): readonly string[] => [
  path,
  ...[...groups].flatMap(([name, group]) =>
    path.startsWith(`${group} `) ? [name, `${name}s`].map(called => called + path.slice(group.length)) : [],
  ),
]

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** Cases of a shell's `case "$path" in`. */
function cases({ words, options, values }: Tree): string {
  const lines: string[] = []
  for (const [path, known] of values) lines.push(`    ${quote(path)}) words=${quote(known.join(' '))} ;;`)
  const paths = [...new Set([...words.keys(), ...options.keys()])]
  for (const path of paths) {
    const next = [...(words.get(path) ?? []), ...(options.get(path) ?? [])].join(' ')
    lines.push(`    ${quote(path)}) words=${quote(next)} ;;`)
  }
  return lines.join('\n')
}

/**
 * Walks the words before the cursor while they name commands; shared by bash and zsh, whose arrays differ. `path` cannot be a
 * variable name in zsh, where it is the search path.
 */
const walk = (list: string, first: number, last: string) => `
  local found="" words="" word next i previous="\${${list}[${last}-1]}"
  for ((i = ${first}; i < ${last}; i++)); do
    word="\${${list}[i]}"
    case "$word" in -*) continue ;; esac
    next="\${found:+$found }$word"
    if _svc_words "$next"; then found="$next"; fi
  done
  case "$previous" in
    -o|--output) words="${outputModes.join(' ')}" ;;
    --*) _svc_words "$found $previous" || _svc_words "$found" ;;
    *) _svc_words "$found" ;;
  esac
`

const lookup = (tree: Tree) => `_svc_words() {
  words=""
  case "$1" in
${cases(tree)}
    *) return 1 ;;
  esac
}
`

/** Asks the daemon for names when no static words exist; `$1`: the words up to the cursor, one per line. */
const live = `_svc_live() {
  case "$words" in ''|--*) SVC_WORDS="$1" "$2" completion words 2>/dev/null ;; esac
}
`

function bash(tree: Tree): string {
  return `${lookup(tree)}${live}_svc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" typed name value IFS=$' \\t\\n'
  local -a names=()${walk('COMP_WORDS', 1, 'COMP_CWORD')}
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$current" in -*) return ;; esac
  # As the shell would read it: without its quotes and backslashes.
  typed="\${current//\\\\/}"
  typed="\${typed#[\\"\\']}"
  printf -v value '%s\\n' "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$typed"
  while IFS=$'\\t' read -r name _; do
    case "$name" in "$typed"*) ;; *) continue ;; esac
    case "$current" in [\\"\\']*) names+=("$name") ;; *) names+=("$(printf '%q' "$name")") ;; esac
  done < <(_svc_live "$value" "\${COMP_WORDS[0]}")
  # Options are there for who types a hyphen.
  if ((\${#names[@]} > 0)); then COMPREPLY=("\${names[@]}"); fi
}
complete -o default -F _svc svc
`
}

function zsh(tree: Tree): string {
  return `#compdef svc
${lookup(tree)}${live}_svc() {
  local -a line names notes
  local entry
  line=("\${words[@]}")
  local current=$CURRENT${walk('line', 2, 'current')}
  if [[ "\${line[current]}" == -* ]]; then
    compadd -- \${=words}
    return
  fi
  for entry in "\${(@f)$(_svc_live "\${(F)line[2,current-1]}"$'\\n'"\${line[current]}"$'\\n' "\${line[1]}")}"; do
    [[ -n "$entry" ]] || continue
    names+=("\${entry%%$'\\t'*}")
    notes+=("\${entry//$'\\t'/  }")
  done
  if (( \${#names} )); then
    compadd -l -d notes -- "\${names[@]}"
  else
    compadd -- \${=words}
  fi
}
compdef _svc svc
`
}

function fish({ words, options, values }: Tree): string {
  const lines = ['complete -c svc -f']
  const at = (path: string) => `-n ${quote(`test "$(__svc_path)" = ${JSON.stringify(path)}`)}`
  const paths = quote([...words.keys(), ...options.keys()].filter(Boolean).join('\n'))
  lines.unshift(
    `set -g __svc_paths (string split \\n -- ${paths})`,
    'function __svc_path',
    '  set -l path',
    '  for word in (commandline -opc)[2..-1]',
    '    set -l next (string trim -- "$path $word")',
    '    contains -- "$next" $__svc_paths; and set path $next',
    '  end',
    '  echo $path',
    'end',
    'function __svc_live',
    '  set -l line (commandline -opc)',
    '  set -lx SVC_WORDS (string join \\n -- $line[2..-1] (commandline -ct) | string collect --no-trim-newlines --allow-empty)',
    '  $line[1] completion words 2>/dev/null',
    'end',
    `complete -c svc -n 'not string match -q -- "-*" (commandline -ct)' -a '(__svc_live)'`,
  )
  for (const [path, next] of words) lines.push(`complete -c svc ${at(path)} -a ${quote([...next].join(' '))}`)
  for (const [path, names] of options) {
    for (const name of names) {
      const known = name === '--output' ? outputModes : values.get(`${path} ${name}`)
      lines.push(`complete -c svc ${at(path)} -l ${name.slice(2)}${known ? ` -x -a ${quote(known.join(' '))}` : ''}`)
    }
  }
  return `${lines.join('\n')}\n`
}
